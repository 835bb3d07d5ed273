import { ExecutionError, isRecord, type JsonObject, type SchemaIssue } from "@tenon/core";
import { wrongFields } from "@tenon/core/internal";
import type { Verdict } from "@tenon/core/internal/schema-check";
import { bounded } from "../connection/time.ts";
import type { ToolResult } from "../types/calls.ts";
import type { EndpointConfig } from "../types/servers.ts";
import type { ToolList } from "./catalog.ts";
import { unusable, type WireTool } from "./definitions.ts";

let checker: Promise<typeof import("@tenon/core/internal/schema-check")> | undefined;

/** The checker, loaded with the first value: it brings a compiler, and a client must start fast. */
function loadChecker(): Promise<typeof import("@tenon/core/internal/schema-check")> {
  checker ??= import("@tenon/core/internal/schema-check");
  return checker;
}

/**
 * Checks a value against one of a tool's schemas. A schema that cannot be compiled, or a check that had to be stopped, is
 * noted once and counts as fitting: the server knows best. A definition that may be old is fetched anew before anything is
 * refused.
 */
async function issuesOf(
  tools: ToolList,
  name: string,
  side: "inputSchema" | "outputSchema",
  value: unknown,
): Promise<readonly SchemaIssue[]> {
  const judge = async (tool: WireTool | undefined): Promise<Verdict> => {
    const schema: JsonObject | undefined = tool?.[side];
    if (!schema || stopped.has(schema)) return { ok: true };
    const { schemaCheck } = await loadChecker();
    const compiled = schemaCheck(schema, side === "inputSchema" ? "all" : "first");
    const effect = side === "inputSchema" ? "arguments are sent unchecked" : "results are not checked";
    if (compiled.fault) {
      const reason = unusable(side, compiled.fault, effect);
      // the look at the list may have found it already
      if (!tools.problems.some((known) => known.tool === name && known.reason === reason)) tools.doubt(name, reason);
      return { ok: true };
    }
    const verdict = compiled.check(value);
    if (verdict.ok !== "stopped") return verdict;
    stopped.add(schema);
    tools.doubt(name, `checking a value against its ${side} was stopped (${verdict.reason.slice(0, 300)}); ${effect}`);
    return { ok: true };
  };
  const first = tools.find(name);
  const verdict = await judge(first);
  if (verdict.ok !== false) return [];
  await bounded(tools.get(), REFRESH_MS).catch(() => {});
  const now = tools.find(name);
  if (now === first) return verdict.issues;
  const again = await judge(now);
  return again.ok === false ? again.issues : [];
}

/** Milliseconds a refusal waits for a definition that is newer; the call it belongs to has a limit of its own. */
const REFRESH_MS = 5_000;

/** Schemas whose check took too long once: it would again. */
const stopped = new WeakSet<JsonObject>();

/** The refusal of arguments: every wrong field, what was expected and what was given. */
function refusal(
  server: string,
  tool: string,
  issues: readonly SchemaIssue[],
  args: unknown,
  shown: unknown,
): ExecutionError {
  const wrong = wrongFields(issues, args, { whole: "arguments", shown });
  const lines = wrong.map(({ message }) => `- ${message}`).join("\n");
  return new ExecutionError(
    `The arguments do not fit tool "${tool}" of server "${server}"; nothing was sent. Correct them and call again:\n${lines}`,
    { code: "invalid_arguments", server, maybeExecuted: false, data: { tool, issues: wrong } },
  );
}

/** The refusal of arguments that are no object, whatever the tool: a copy of them would be one, with wrong names. */
export function refuseNoObject(server: string, tool: string, args: unknown): ExecutionError | undefined {
  if (isRecord(args)) return undefined;
  return refusal(server, tool, [{ path: [], message: "must be an object" }], args, args);
}

/**
 * Checks a tool's arguments before they are sent.
 * @param args what will be sent
 * @param shown what the caller gave, before any interceptor
 * @throws ExecutionError `invalid_arguments` naming every wrong field, what was expected and what was given
 */
export async function checkArguments(
  tools: ToolList,
  server: string,
  name: string,
  args: Readonly<Record<string, unknown>>,
  shown: unknown,
): Promise<void> {
  let issues = await issuesOf(tools, name, "inputSchema", args);
  if (issues.length === 0) return;
  // a Date, a Map or undefined is something else on the wire
  issues = await issuesOf(tools, name, "inputSchema", onWire(args));
  if (issues.length === 0) return;
  const without = withoutNullHeaders(tools.find(name)?.inputSchema, args);
  if (without && (await issuesOf(tools, name, "inputSchema", onWire(without))).length === 0) return;
  throw refusal(server, name, issues, args, shown);
}

/**
 * The arguments without those that are null and that a header repeats: such a header is left out then, so null means "not
 * given" there (2026-07-28, parameter headers). Undefined when there are none.
 */
function withoutNullHeaders(schema: JsonObject | undefined, args: Readonly<Record<string, unknown>>) {
  const properties = isRecord(schema?.properties) ? schema.properties : {};
  const absent = Object.keys(args).filter((key) => {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    return args[key] === null && isRecord(property) && "x-mcp-header" in property;
  });
  if (absent.length === 0) return undefined;
  return Object.fromEntries(Object.entries(args).filter(([key]) => !absent.includes(key)));
}

function onWire(args: Readonly<Record<string, unknown>>): unknown {
  try {
    return JSON.parse(JSON.stringify(args));
  } catch {
    return args;
  }
}

/**
 * Checks a tool's structured content against its `outputSchema`. An error of the tool is never checked: its text matters
 * more. A mismatch becomes an error result that says what is wrong, with what the tool said after it. What a replica of another version
 * than the list's answers is no mismatch: that one declares something else.
 * @param from the place that answered, where it is known
 */
export async function checkOutput(
  tools: ToolList,
  server: string,
  name: string,
  result: ToolResult,
  from?: EndpointConfig,
): Promise<ToolResult> {
  if (result.isError || !tools.find(name)?.outputSchema) return result;
  const { structured } = result;
  const issues =
    structured === undefined
      ? [{ path: [], message: "missing" }]
      : await issuesOf(tools, name, "outputSchema", structured);
  if (issues.length === 0 || (from && !tools.isOf(from))) return result;
  const wrong = wrongFields(issues, structured, { whole: "structured content" });
  const text =
    `Tool "${name}" of server "${server}" ran, but its result does not fit what the server declares for it ` +
    `(${wrong.map(({ message }) => message).join("; ")}). The call may have taken effect: check before you repeat it.`;
  const { structured: _wrong, ...rest } = result;
  return Object.freeze({
    ...rest,
    content: Object.freeze([{ type: "text" as const, text }, ...result.content]),
    isError: true,
    problem: Object.freeze({ code: "invalid_output", data: { tool: name, issues: wrong } }),
  });
}
