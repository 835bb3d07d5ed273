import { isDeepStrictEqual } from "node:util";
import { isRecord, type JsonObject, META } from "@tenon/core";
import { describeFault, type SchemaFault, surveySchema } from "@tenon/core/internal";
import { deeperThan } from "../call/size.ts";
import type { CatalogTool } from "../types/catalog.ts";
import type { ServerInfo } from "../types/servers.ts";
import { recordAt, textAt } from "./pages.ts";
import { declaresHeaders, headerProblem } from "./param-headers.ts";

/** Levels of one definition, schemas and examples included. */
const MAX_DEPTH = 200;

/** A tool as its server describes it, before it has a model-side name. */
export type WireTool = Omit<CatalogTool, "name">;

/** One thing that is wrong with a tool. */
export type Problem = ServerInfo["problems"][number];

/** Whether the inputSchema leaves out its type: arguments are an object all the same, so the tool is of use. */
function lacksType({ inputSchema }: Record<string, unknown>): boolean {
  return isRecord(inputSchema) && inputSchema.type === undefined;
}

/** What counts for how a list is read: parameters travel as headers over HTTP; whether calls may become tasks. */
export interface ListedOver {
  readonly http: boolean;
  readonly tasks: boolean;
}

/**
 * Whether a tool's calls become tasks: as our servers say it, or as revision 2025-11-25 did. A server that says neither may still
 * make a task of any call.
 */
function taskOf(item: Record<string, unknown>): "optional" | "required" {
  const own = recordAt(item, "_meta")[META.task];
  return own === "required" || recordAt(item, "execution").taskSupport === "required" ? "required" : "optional";
}

/** Reads one definition; a string says why it cannot be used. */
function parseTool(server: string, item: unknown, { http, tasks }: ListedOver): WireTool | string {
  if (!isRecord(item)) return "the definition is not an object";
  if (typeof item.name !== "string" || item.name === "") return "it has no name";
  if (deeperThan(item, MAX_DEPTH)) return `it is nested deeper than ${MAX_DEPTH} levels`;
  if (!isRecord(item.inputSchema)) return "it has no inputSchema object";
  const schema = lacksType(item) ? { type: "object", ...item.inputSchema } : item.inputSchema;
  if (schema.type !== "object") {
    return `its inputSchema must have "type": "object", found ${JSON.stringify(schema.type) ?? "none"}`;
  }
  // many write null for what they leave out
  const outputSchema = item.outputSchema ?? undefined;
  if (outputSchema !== undefined && !isRecord(outputSchema)) return "its outputSchema is not an object";
  const problem = http && declaresHeaders(schema) ? headerProblem(schema) : undefined;
  if (problem) return problem;
  const task = taskOf(item);
  if (task === "required" && !tasks)
    return "it can only run as a task, and its server does not offer the tasks extension of revision 2026-07-28";
  const annotations = recordAt(item, "annotations");
  const title = textAt(item, "title") ?? textAt(annotations, "title");
  return Object.freeze({
    server,
    wireName: item.name,
    ...(title !== undefined && { title }),
    description: textAt(item, "description") ?? "",
    inputSchema: schema as JsonObject, // it came as JSON
    ...(outputSchema !== undefined && { outputSchema: outputSchema as JsonObject }), // it came as JSON
    annotations,
    ...(tasks && { task }),
    meta: recordAt(item, "_meta"),
  });
}

/** What a server's raw definitions come down to. */
export interface ParsedTools {
  /** The usable tools, by name in code-unit order. */
  readonly tools: WireTool[];
  readonly problems: Problem[];
  /** Names that stand for several different tools: nobody can say which one a call would reach. */
  readonly ambiguous: ReadonlySet<string>;
}

/** Reads raw definitions one by one, so that a malformed one does not cost the others. */
export function parseTools(server: string, items: readonly unknown[], over: ListedOver): ParsedTools {
  const tools = new Map<string, WireTool>();
  const problems: Problem[] = [];
  const ambiguous = new Set<string>();
  for (const [index, item] of items.entries()) {
    const name = isRecord(item) && typeof item.name === "string" && item.name !== "" ? item.name : `#${index + 1}`;
    const tool = parseTool(server, item, over);
    const first = tools.get(name);
    if (typeof tool === "string") problems.push({ tool: name, reason: tool });
    else if (!first) {
      tools.set(name, tool);
      if (isRecord(item) && lacksType(item))
        problems.push({ tool: name, reason: 'its inputSchema has no "type"; it is taken for "object"' });
    } else if (isDeepStrictEqual(first, tool))
      problems.push({ tool: name, reason: "the server lists it twice, with one definition" });
    else if (!ambiguous.has(name)) {
      ambiguous.add(name);
      problems.push({
        tool: name,
        reason: `the server lists two different tools with this name (${[first, tool].map(inWords).join(" and ")}); neither is used`,
      });
    }
  }
  for (const name of ambiguous) tools.delete(name);
  const sorted = [...tools.values()].sort((a, b) => (a.wireName < b.wireName ? -1 : a.wireName > b.wireName ? 1 : 0));
  return { tools: sorted, problems, ambiguous };
}

/** What tells one definition from another, for a person. */
function inWords({ description, inputSchema }: WireTool): string {
  const properties = Object.keys(isRecord(inputSchema.properties) ? inputSchema.properties : {});
  return JSON.stringify(
    description ? description.slice(0, 80) : `takes ${properties.slice(0, 5).join(", ") || "nothing"}`,
  );
}

/** Why values are not checked against one of a tool's schemas. */
export function unusable(side: "inputSchema" | "outputSchema", fault: SchemaFault, effect: string): string {
  return `its ${side} cannot be used (${describeFault(fault).slice(0, 300)}); ${effect}`;
}

/** What the static look at a tool's schemas tells its user. */
export function schemaProblems(tool: WireTool): Problem[] {
  const sides = [
    ["inputSchema", tool.inputSchema, "arguments are sent unchecked"],
    ["outputSchema", tool.outputSchema, "results are not checked"],
  ] as const;
  return sides.flatMap(([side, schema, effect]) => {
    if (!schema) return [];
    const { fault, patterns } = surveySchema(schema);
    if (fault) return [{ tool: tool.wireName, reason: unusable(side, fault, effect) }];
    return patterns.map((pattern) => ({
      tool: tool.wireName,
      reason: `its ${side} has a pattern that is not checked (${describeFault(pattern)})`,
    }));
  });
}
