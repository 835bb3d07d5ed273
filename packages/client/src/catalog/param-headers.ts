import { isRecord } from "@tenon/core";

const KEY = "x-mcp-header";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES = ["string", "integer", "boolean"];
const MAX_DEPTH = 100;

/** Whether a schema declares parameters that travel as HTTP headers too. */
export function declaresHeaders(schema: unknown): boolean {
  return JSON.stringify(schema).includes(`"${KEY}"`);
}

/**
 * What is wrong with the `x-mcp-header` declarations of an input schema, or undefined. A client over HTTP must leave out
 * a tool with a wrong one (revision 2026-07-28, Streamable HTTP).
 */
export function headerProblem(schema: unknown): string | undefined {
  const seen = new Set<string>();
  const check = (node: Record<string, unknown>, path: string): string | undefined => {
    const name = node[KEY];
    if (typeof name !== "string" || !TOKEN.test(name)) return `${path}: ${KEY} must be a header token`;
    if (typeof node.type !== "string" || !TYPES.includes(node.type)) {
      return `${path}: ${KEY} is allowed on ${TYPES.join(", ")} only`;
    }
    const lower = name.toLowerCase();
    if (seen.has(lower)) return `${path}: ${KEY} "${name}" is declared twice`;
    seen.add(lower);
    return undefined;
  };
  // `names` tells a map of property names from a schema; only a chain of `properties` reaches a header
  const walk = (node: unknown, path: string, reachable: boolean, names: boolean, depth: number): string | undefined => {
    if (depth > MAX_DEPTH) return `${path}: nested too deeply`;
    if (Array.isArray(node))
      return first(
        node.map((item, i) => [item, `${path}[${i}]`, false, false]),
        depth,
      );
    if (!isRecord(node)) return undefined;
    if (!names && KEY in node) {
      if (!reachable || path === "") return `${path || "the root"}: ${KEY} is allowed on properties only`;
      const problem = check(node, path);
      if (problem) return problem;
    }
    return first(
      Object.entries(node).map(([key, child]) => [
        child,
        names ? `${path}${path && "."}${key}` : key === "properties" ? path : `${path}<${key}>`,
        reachable && (names || key === "properties"),
        !names && ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"].includes(key),
      ]),
      depth,
    );
  };
  const first = (nodes: [unknown, string, boolean, boolean][], depth: number): string | undefined => {
    for (const [node, path, reachable, names] of nodes) {
      const problem = walk(node, path, reachable, names, depth + 1);
      if (problem) return problem;
    }
    return undefined;
  };
  return walk(schema, "", true, false, 0);
}
