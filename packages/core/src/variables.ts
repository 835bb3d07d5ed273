import { isRecord } from "./json.ts";
import { didYouMean } from "./options.ts";

/** `${…}`, or `$${` which stands for a plain `${`. */
const VARIABLE = /\$\$\{|\$\{([^{}]*)\}/g;

type Path = readonly (string | number)[];

/**
 * Replaces the variables in every text inside a value. What a variable holds is not looked into again.
 * @param lookUp what stands for `${body}` at a path; what it throws goes on
 */
export async function expand(
  path: Path,
  value: unknown,
  lookUp: (path: Path, body: string) => string | Promise<string>,
): Promise<unknown> {
  if (typeof value === "string") {
    let out = "";
    let at = 0;
    for (const match of value.matchAll(VARIABLE)) {
      out += value.slice(at, match.index);
      out += match[1] === undefined ? "${" : await lookUp(path, match[1]);
      at = match.index + match[0].length;
    }
    return out + value.slice(at);
  }
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const [index, item] of value.entries()) items.push(await expand([...path, index], item, lookUp));
    return items;
  }
  if (!isRecord(value)) return value;
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) entries.push([key, await expand([...path, key], item, lookUp)]);
  return Object.fromEntries(entries);
}

/** What `${NAME}` stands for, or why nothing does; undefined where the body is no name of an environment variable. */
export type EnvironmentVariable = { readonly value: string } | { readonly problem: string } | undefined;

/** Reads `NAME`, `NAME:-default` and `env:NAME`, the body of a variable. */
export function readEnvironment(body: string, env: Readonly<Record<string, string | undefined>>): EnvironmentVariable {
  const [, name, fallback] = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(body) ?? [];
  if (name === undefined) return undefined;
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (fallback !== undefined) return { value: value === undefined || value === "" ? fallback : value };
  if (value !== undefined) return { value };
  const near = didYouMean(
    name,
    Object.keys(env).filter((key) => env[key] !== undefined),
  );
  return {
    problem: `uses \${${body}}, but the environment has no ${name}; set it, or write \${${body}:-default}${near ? ` (did you mean ${near}?)` : ""}`,
  };
}
