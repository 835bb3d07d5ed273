import type { CallToolResult, ContentBlock, InputRequiredResult } from "@modelcontextprotocol/client";
import { ExecutionError, isRecord, ProtocolError } from "@tenon/core";
import { recordAt, textAt } from "../catalog/pages.ts";
import { expectList } from "../expect.ts";
import type { ToolResult } from "../types/calls.ts";
import { deeperThan } from "./size.ts";

/** Levels that are still written as JSON: JSON.stringify recurses. */
const MAX_DEPTH = 1_000;

/** How many bytes a base64 text holds. */
function sizeOf(base64: unknown): string {
  if (typeof base64 !== "string") return "no data";
  return `${Math.floor((base64.replace(/=+$/, "").length * 3) / 4)} bytes`;
}

function renderResource(resource: Record<string, unknown>): string {
  const text = textAt(resource, "text");
  if (text !== undefined) return text;
  const uri = textAt(resource, "uri") ?? "without address";
  return `[resource ${uri}, ${textAt(resource, "mimeType") ?? "unknown type"}, ${sizeOf(resource.blob)}]`;
}

/** JSON, cut to 500 characters; what is nested too deeply for JSON is said to be so. */
function inShort(value: unknown): string {
  if (deeperThan(value, MAX_DEPTH)) return "nested too deeply to show";
  const json = JSON.stringify(value) ?? "nothing";
  return json.length > 500 ? `${json.slice(0, 500)}…` : json;
}

function jsonText(value: unknown): string {
  return deeperThan(value, MAX_DEPTH)
    ? "[structured content, nested too deeply to show]"
    : (JSON.stringify(value) ?? "");
}

function renderBlock(block: unknown): string {
  if (!isRecord(block)) return `[unreadable content: ${inShort(block)}]`;
  const type = textAt(block, "type") ?? "unknown";
  const mime = textAt(block, "mimeType") ?? "unknown type";
  switch (type) {
    case "text":
      return textAt(block, "text") ?? "[text, no text]";
    case "image":
    case "audio":
      return `[${type}, ${mime}, ${sizeOf(block.data)}]`;
    case "resource_link": {
      const label = textAt(block, "title") ?? textAt(block, "name");
      const description = textAt(block, "description");
      return `[link ${label ? `"${label}" ` : ""}${textAt(block, "uri") ?? "without address"}${description ? `: ${description}` : ""}]`;
    }
    case "resource":
      return renderResource(recordAt(block, "resource"));
    default:
      // a kind newer than this client, but bytes with a type all the same
      if ("data" in block && "mimeType" in block) return `[${type}, ${mime}, ${sizeOf(block.data)}]`;
      return `[content of unknown type "${type}": ${inShort(block)}]`;
  }
}

/**
 * The text a model reads for a result: every block in order, one per line. What is not text is described, never dropped.
 * @param structured read when there are no blocks; it becomes its JSON text
 */
export function renderText(content: readonly ContentBlock[], structured?: unknown): string {
  expectList(content, "renderText(content, structured): content", "; give it result.content, not the result");
  if (content.length > 0) return content.map(renderBlock).join("\n");
  return structured === undefined ? "" : jsonText(structured);
}

/**
 * Checks an answer element by element; types of content this client does not know are kept.
 * @throws ProtocolError `bad_answer`
 */
export function checkResult(server: string, tool: string, raw: Record<string, unknown>): CallToolResult {
  const fail = (reason: string): never => {
    throw new ProtocolError(`server "${server}" answered tools/call ${tool} against the protocol: ${reason}`, {
      code: "bad_answer",
      server,
      maybeExecuted: true,
    });
  };
  const content = raw.content ?? [];
  if (!Array.isArray(content)) return fail(`content is not a list but ${inShort(content)}`);
  for (const [index, block] of content.entries()) {
    if (!isRecord(block) || typeof block.type !== "string")
      return fail(`content[${index}] has no type: ${inShort(block)}`);
  }
  const { resultType: _wire, isError, ...rest } = raw;
  // many write null for what they leave out
  const given = isError ?? undefined;
  if (given !== undefined && typeof given !== "boolean") {
    return fail(`isError is not true or false but ${inShort(given)}; the result reads ${inShort(renderText(content))}`);
  }
  const result = { ...rest, ...(given !== undefined && { isError: given }) };
  // every element was checked above; unknown types of content stay, which is wider than the SDK's union
  return { ...result, content } as CallToolResult;
}

/** True for an answer that asks questions first. */
export function asksForInput(result: unknown): result is InputRequiredResult {
  return isRecord(result) && result.resultType === "input_required";
}

/**
 * The frozen result of a final answer. Structured content without any other gets its JSON as text, so that whoever reads
 * the content only misses nothing.
 */
export function toToolResult(raw: CallToolResult): ToolResult {
  const given = raw.content ?? [];
  const alone = given.length === 0 && raw.structuredContent !== undefined;
  const content: ContentBlock[] = alone ? [{ type: "text", text: jsonText(raw.structuredContent) }] : given;
  return Object.freeze({
    content: Object.freeze(content),
    ...(raw.structuredContent !== undefined && { structured: raw.structuredContent }),
    isError: raw.isError === true,
    meta: Object.freeze({ ...raw._meta }),
    raw,
  });
}

/** True for a tool's result among what interceptors may return instead. */
export function isToolResult(outcome: unknown): outcome is ToolResult {
  return isRecord(outcome) && Array.isArray(outcome.content) && typeof outcome.isError === "boolean";
}

/** The error for a result with `isError`: its text is the message, its structured content the data. */
export function resultError(server: string, tool: string, result: ToolResult): ExecutionError {
  const text = renderText(result.content, result.structured);
  return new ExecutionError(text || `tool "${tool}" of server "${server}" failed and gave no reason`, {
    code: result.problem?.code ?? "tool_error",
    server,
    ...(result.problem?.code === "invalid_arguments" && { maybeExecuted: false }),
    data: result.problem?.data ?? result.structured,
  });
}

/** An error result that this client makes of one of its own errors: nothing came over the wire. */
export function problemResult(error: ExecutionError): ToolResult {
  const raw: CallToolResult = { content: [{ type: "text", text: error.message }], isError: true };
  return Object.freeze({ ...toToolResult(raw), problem: Object.freeze({ code: error.code, data: error.data }) });
}
