import { isDeepStrictEqual } from "node:util";
import { ExecutionError, isRecord, issueMessage, issuePath, type JsonObject, type SchemaIssue } from "@tenon/core";
import type { ToolList } from "./catalog.ts";
import { bounded } from "./connection/time.ts";
import type { WireTool } from "./definitions.ts";
import { schemaCheck, type Verdict } from "./schema-check.ts";
import type { ToolResult } from "./types/calls.ts";

/** One wrong field, as plain data. */
interface Wrong {
  readonly path: string;
  readonly message: string;
}

/** The value at a path, and whether there is one. */
function valueAt(value: unknown, path: SchemaIssue["path"]): { there: boolean; value?: unknown } {
  let at: unknown = value;
  for (const part of path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return { there: false };
    at = (at as Record<PropertyKey, unknown>)[key]; // an object with this key
  }
  return { there: true, value: at };
}

function inShort(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isRecord(value)) return "an object";
  const text = typeof value === "string" ? value : String(value);
  const cut = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  return typeof value === "string" ? JSON.stringify(cut) : cut;
}

/** What was given, in words; a value that an interceptor put there (a token, say) is called by its type only. */
function got(issue: SchemaIssue, value: unknown, shown: unknown): string {
  const found = valueAt(value, issue.path);
  if (!found.there || issue.message === "unknown property") return "";
  const known = valueAt(shown, issue.path);
  if (known.there && isDeepStrictEqual(known.value, found.value)) return `, got ${inShort(found.value)}`;
  if (found.value === null || typeof found.value === "object") return `, got ${inShort(found.value)}`;
  return `, got a ${typeof found.value}`;
}

/** Characters of one issue; a pattern or a constant may be of any length. */
const MAX_WORDS = 2_000;

function inWords(issues: readonly SchemaIssue[], value: unknown, shown: unknown, whole: string): Wrong[] {
  return issues.map((issue) => ({
    path: issuePath(issue),
    message: `${issuePath(issue) || whole}: ${issueMessage(issue).slice(0, MAX_WORDS)}${got(issue, value, shown)}`,
  }));
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
    const compiled = await schemaCheck(schema, side === "inputSchema" ? "all" : "first");
    const effect = side === "inputSchema" ? "arguments are sent unchecked" : "results are not checked";
    if ("problem" in compiled) {
      if (!surveyed(tools, name, compiled.problem)) {
        tools.doubt(name, `its ${side} cannot be compiled (${compiled.problem.slice(0, 300)}); ${effect}`);
      }
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

/** Whether the list already says so. */
function surveyed(tools: ToolList, name: string, problem: string): boolean {
  return tools.problems.some(({ tool, reason }) => tool === name && reason.includes(problem));
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
  const wrong = inWords(issues, args, shown, "the arguments");
  const lines = wrong.map(({ message }) => `- ${message}`).join("\n");
  throw new ExecutionError(
    `The arguments do not fit tool "${name}" of server "${server}"; nothing was sent. Correct them and call again:\n${lines}`,
    { code: "invalid_arguments", server, maybeExecuted: false, data: { tool: name, issues: wrong } },
  );
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
 * more. A mismatch becomes an error result that says what is wrong, with what the tool said after it.
 */
export async function checkOutput(
  tools: ToolList,
  server: string,
  name: string,
  result: ToolResult,
): Promise<ToolResult> {
  if (result.isError || !tools.find(name)?.outputSchema) return result;
  const { structured } = result;
  const issues =
    structured === undefined
      ? [{ path: [], message: "missing" }]
      : await issuesOf(tools, name, "outputSchema", structured);
  if (issues.length === 0) return result;
  const wrong = inWords(issues, structured, structured, "structured content");
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
