import { nameTools } from "@tenon/client/internal";
import { isRecord, type JsonObject } from "@tenon/core";
import { describeFault, type SchemaFault, surveySchema } from "@tenon/core/internal";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import type { Code } from "./codes.ts";
import type { Deadline, Target, Visit } from "./visit.ts";

/** Names that the specification allows. */
const NAME = /^[\w.-]{1,128}$/;
/** Milliseconds that are left for the end. */
const RESERVE_MS = 200;
/** Names of tools in one line. */
const MAX_NAMED = 3;

/** One cause, with every tool it was found at. */
type Found = Map<Code, string[]>;

const add = (found: Found, code: Code, evidence: string): void => {
  const known = found.get(code);
  if (known) known.push(evidence);
  else found.set(code, [evidence]);
};

/** Milliseconds that compiling one schema may take; nothing can stop it from outside. */
const COMPILE_MS = 2_000;

/** What is wrong with a schema: a look at it, and compiling it while there is time for the worst. */
function faultOf(schema: JsonObject, { left }: Deadline): SchemaFault | undefined {
  return surveySchema(schema).fault ?? (left() > COMPILE_MS ? schemaCheck(schema, "first").fault : undefined);
}

function checkSchema(
  { deadline }: Visit,
  found: Found,
  name: string,
  side: "inputSchema" | "outputSchema",
  schema: unknown,
): void {
  if (!isRecord(schema)) {
    if (schema === undefined || schema === null) {
      if (side === "inputSchema") add(found, "schema_missing", name);
    } else add(found, "schema_invalid", `${name}: its ${side} is no object`);
    return;
  }
  if (side === "inputSchema" && schema.type !== "object") {
    add(found, "schema_root", `${name}: "type" is ${JSON.stringify(schema.type) ?? "missing"}`);
    return;
  }
  const fault = faultOf(schema as JsonObject, deadline); // it came as JSON
  if (!fault) return;
  const code = fault.code === "outside_reference" ? "schema_remote_ref" : "schema_invalid";
  add(found, code, `${name}: ${side} ${describeFault(fault)}`);
}

function checkNames(found: Found, { name, replicaOf, configured }: Target, names: readonly string[]): void {
  const target = replicaOf ?? name;
  const seen = new Set<string>();
  for (const tool of names) {
    if (seen.has(tool)) add(found, "tool_duplicate", tool);
    seen.add(tool);
    if (!NAME.test(tool)) add(found, "tool_name", JSON.stringify(tool.slice(0, 140)));
  }
  const unique = [...seen].filter((tool) => NAME.test(tool));
  const mapped = nameTools(
    unique.map((wireName) => ({ server: target, wireName })),
    configured ? "prefixed" : "plain",
    [target],
  );
  const before = configured ? `mcp_${target}_` : "";
  for (const [index, tool] of unique.entries()) {
    const seenAs = mapped[index];
    if (seenAs !== before + tool) add(found, "tool_name_mapped", `${tool} as ${seenAs}`);
  }
}

/**
 * Looks at raw definitions of tools, one by one: a finding for each cause, naming the tools.
 * @returns the names
 */
export function checkTools(visit: Visit, items: readonly unknown[]): readonly string[] {
  const found: Found = new Map();
  const names: string[] = [];
  for (const [index, item] of items.entries()) {
    if (!isRecord(item) || typeof item.name !== "string" || item.name === "") {
      add(found, "tool_malformed", `#${index + 1}`);
      continue;
    }
    names.push(item.name);
    if (visit.deadline.left() <= RESERVE_MS) continue; // a list may be longer than the time that is left
    checkSchema(visit, found, item.name, "inputSchema", item.inputSchema);
    checkSchema(visit, found, item.name, "outputSchema", item.outputSchema);
  }
  checkNames(found, visit.target, names);
  for (const [code, evidence] of found) visit.note(code, { evidence: listed(evidence) });
  return names;
}

/** The first few, and how many more. */
export function listed(all: readonly string[]): string {
  const more = all.length - MAX_NAMED;
  const first = all.slice(0, MAX_NAMED).join("; ");
  return more > 0 ? `${first}; and ${more} more` : first;
}
