import { ConfigError, digest } from "@tenon/core";
import type { Naming } from "./types.ts";

const MAX = 64;

/** A tool to be named: where it is and what it is called there. */
export interface Nameable {
  readonly server: string;
  readonly wireName: string;
}

function mark(tool: Nameable): string {
  // base64url without its two special characters would still be case-sensitive; hex survives every model
  return Buffer.from(digest([tool.server, tool.wireName]), "base64url")
    .toString("hex")
    .slice(0, 8);
}

function withMark(name: string, tool: Nameable): string {
  return `${name.slice(0, MAX - 9)}_${mark(tool)}`;
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
    if (naming !== "prefixed") return legal(naming(tool.server, tool.wireName), tool);
    const name = legal(`mcp_${tool.server}_${tool.wireName}`, tool);
    return readsAsAnother(tool, servers) && !name.endsWith(mark(tool)) ? withMark(name, tool) : name;
  });
  const owners = new Map<string, number[]>();
  for (const [index, name] of names.entries()) owners.set(name, [...(owners.get(name) ?? []), index]);
  for (const [name, indexes] of owners) {
    if (indexes.length < 2) continue;
    const clash = indexes.flatMap((index) => tools[index] ?? []);
    if (naming === "plain") {
      const [first, second] = clash.map((tool) => `"${tool.wireName}" of server "${tool.server}"`);
      throw new ConfigError(
        `naming "plain" gives two tools the name "${name}": ${first} and ${second}. Use naming "prefixed" or a function`,
        { code: "name_collision", data: { name, tools: clash.map(({ server, wireName }) => ({ server, wireName })) } },
      );
    }
    for (const index of indexes) {
      const tool = tools[index];
      if (tool) names[index] = withMark(name, tool);
    }
  }
  return names;
}
