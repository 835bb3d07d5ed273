import { ConfigError } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import type { CatalogTool, Naming } from "../types/catalog.ts";
import type { WireTool } from "./definitions.ts";

const MAX = 64;

/** A tool to be named: where it is and what it is called there. */
export interface Nameable {
  readonly server: string;
  readonly wireName: string;
}

/** Lengths of the marks that are tried: a server may choose names that collide with a short one. */
const MARKS = [8, 16, 32];

function mark(tool: Nameable, length = 8): string {
  // base64url without its two special characters would still be case-sensitive; hex survives every model
  return Buffer.from(digest([tool.server, tool.wireName]), "base64url")
    .toString("hex")
    .slice(0, length);
}

function withMark(name: string, tool: Nameable, length = 8): string {
  return `${name.slice(0, MAX - length - 1)}_${mark(tool, length)}`;
}

function named(naming: Exclude<Naming, string>, { server, wireName }: Nameable): string {
  const name: unknown = naming(server, wireName);
  if (typeof name === "string") return name;
  throw new ConfigError(
    `the naming function gave ${JSON.stringify(name) ?? typeof name} for tool "${wireName}" of server "${server}"; it must return a text`,
    { code: "invalid_option", server },
  );
}

/** `name` with illegal characters replaced and cut to 64; a hash keeps it apart when anything was changed. */
function legal(name: string, tool: Nameable): string {
  const safe = name.replace(/[^A-Za-z0-9_-]/gu, "_");
  return safe === name && safe !== "" && safe.length <= MAX ? safe : withMark(safe, tool);
}

/** `mcp_a_b_c` could be tool `b_c` of server `a` or tool `c` of server `a_b`; the first then always carries a hash. */
function readsAsAnother(tool: Nameable, servers: readonly string[]): boolean {
  const full = `${tool.server}_${tool.wireName}`;
  return servers.some((other) => other.length > tool.server.length && full.startsWith(`${other}_`));
}

/**
 * Model-side names, in the order of `tools`: legal (`^[A-Za-z0-9_-]{1,64}$`), unique, and the same on every run, since
 * they depend on the names only and not on the order in which servers answered.
 * @param servers all configured server ids
 * @throws ConfigError `name_collision` when `"plain"` gives two tools one name
 */
export function nameTools(tools: readonly Nameable[], naming: Naming, servers: readonly string[]): string[] {
  const names = tools.map((tool) => {
    if (naming === "plain") return legal(tool.wireName, tool);
    if (naming !== "prefixed") return legal(named(naming, tool), tool);
    const name = legal(`mcp_${tool.server}_${tool.wireName}`, tool);
    return readsAsAnother(tool, servers) && !name.endsWith(mark(tool)) ? withMark(name, tool) : name;
  });
  for (const length of MARKS) {
    const clashes = clashesOf(names);
    if (clashes.length === 0) return names;
    for (const [name, indexes] of clashes) {
      const clash = indexes.flatMap((index) => tools[index] ?? []);
      if (naming === "plain" && length === MARKS[0]) throw collision(name, clash);
      for (const index of indexes) {
        const tool = tools[index];
        if (tool) names[index] = withMark(name, tool, length);
      }
    }
  }
  const [left] = clashesOf(names);
  if (left)
    throw collision(
      left[0],
      left[1].flatMap((index) => tools[index] ?? []),
    );
  return names;
}

/** Names that more than one tool has, with the positions of those tools. */
function clashesOf(names: readonly string[]): [string, number[]][] {
  const owners = new Map<string, number[]>();
  for (const [index, name] of names.entries()) {
    const others = owners.get(name);
    if (others) others.push(index);
    else owners.set(name, [index]);
  }
  return [...owners].filter(([, indexes]) => indexes.length > 1);
}

function collision(name: string, clash: readonly Nameable[]): ConfigError {
  const [first, second] = clash.map((tool) => `"${tool.wireName}" of server "${tool.server}"`);
  return new ConfigError(
    `two tools would have the name "${name}": ${first} and ${second}. Use naming "prefixed" or a function`,
    { code: "name_collision", data: { name, tools: clash.map(({ server, wireName }) => ({ server, wireName })) } },
  );
}

/** Puts the lists of all servers into one catalog with model-side names. `servers` are all configured ids, in order. */
export function mergeTools(
  tools: readonly WireTool[],
  naming: Naming,
  servers: readonly string[],
): readonly CatalogTool[] {
  const names = nameTools(tools, naming, servers);
  return tools.map((tool, index) => Object.freeze({ name: names[index] ?? tool.wireName, ...tool }));
}
