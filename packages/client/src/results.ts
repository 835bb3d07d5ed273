import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import { ExecutionError, isRecord, ProtocolError } from "@tenon/core";
import { recordAt, textAt } from "./pages.ts";
import type { ToolResult, WireResult } from "./types.ts";

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

function renderBlock(block: unknown): string {
  if (!isRecord(block)) return `[unreadable content: ${JSON.stringify(block) ?? "nothing"}]`;
  const type = textAt(block, "type") ?? "unknown";
  const mime = textAt(block, "mimeType") ?? "unknown type";
  switch (type) {
    case "text":
      return textAt(block, "text") ?? "";
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
    default: {
      const json = JSON.stringify(block);
      return `[content of unknown type "${type}": ${json.length > 500 ? `${json.slice(0, 500)}…` : json}]`;
    }
  }
}

/**
 * The text a model reads for a result: every block in order, one per line. What is not text is described, never dropped.
 * @param structured read when there are no blocks; it becomes its JSON text
 */
export function renderText(content: readonly ContentBlock[], structured?: unknown): string {
  if (content.length > 0) return content.map(renderBlock).join("\n");
  return structured === undefined ? "" : (JSON.stringify(structured) ?? "");
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
  if (!Array.isArray(content)) return fail("content is not a list");
  for (const [index, block] of content.entries()) {
    if (!isRecord(block) || typeof block.type !== "string") return fail(`content[${index}] has no type`);
  }
  if (raw.isError !== undefined && typeof raw.isError !== "boolean") return fail("isError is not a boolean");
  const { resultType: _wire, ...result } = raw;
  // every element was checked above; unknown types of content stay, which is wider than the SDK's union
  return { ...result, content } as CallToolResult;
}

/** True for an answer that asks questions first. */
export function asksForInput(result: WireResult): result is Exclude<WireResult, CallToolResult> {
  return isRecord(result) && result.resultType === "input_required";
}

/** The frozen result of a final answer. */
export function toToolResult(raw: CallToolResult): ToolResult {
  return Object.freeze({
    content: Object.freeze(raw.content ?? []),
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
    code: "tool_error",
    server,
    data: result.structured,
  });
}
