import type { CallToolResult, GetPromptResult, ReadResourceResult } from "@modelcontextprotocol/server";
import { describeIssues, type Era, isRecord, type Schema, TenonError, toJson, validate } from "@tenon/core";
import { isCallToolResult, isContent } from "./content.ts";

/** A handler returned something other than it declared: the author's mistake, masked for the caller, loud in the log. */
class ReturnedValueError extends TenonError {}

/** Structured content must be an object for legacy peers: anything else travels as `{ result: value }` there. */
export function structuredFor(era: Era, value: unknown): unknown {
  return era === "legacy" && !isRecord(value) ? { result: value } : value;
}

/** The legacy era's spelling of an output schema whose root is not an object. */
export function outputSchemaFor(era: Era, schema: Record<string, unknown>): Record<string, unknown> {
  if (era === "modern" || schema.type === "object") return schema;
  return { type: "object", properties: { result: schema }, required: ["result"] };
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Turns what a tool's handler returned into the wire result.
 * @throws TenonError when the value is not JSON (naming the path) or does not match the declared output
 */
export async function toolResult(
  returned: unknown,
  tool: { name: string; output?: Schema | undefined },
  era: Era,
): Promise<CallToolResult> {
  if (!isContent(returned) && isCallToolResult(returned)) return returned;
  const blocks = isContent(returned) ? [...returned.blocks] : undefined;
  let value: unknown = isContent(returned) ? returned.structured : returned;

  if (tool.output !== undefined) {
    const checked = await validate(tool.output, value);
    if (checked.issues) {
      throw new ReturnedValueError(
        `Tool ${tool.name} returned a value that does not match its output schema: ${describeIssues(checked.issues)}`,
        { code: "output_mismatch" },
      );
    }
    value = checked.value;
  }
  const json = value === undefined ? undefined : toJson(value, `result of ${tool.name}`);
  const structured = tool.output !== undefined || (typeof json === "object" && json !== null);
  return {
    content: blocks ?? (json === undefined ? [] : [{ type: "text", text: asText(json) }]),
    // without a declared output, an array has no place in a legacy result and its text says it all
    ...(json !== undefined &&
      structured &&
      (tool.output !== undefined || era === "modern" || isRecord(json)) && {
        structuredContent: structuredFor(era, json) as Record<string, unknown>, // toJson made it JSON
      }),
  };
}

/** Turns what a resource's handler returned into the wire result: text, bytes, or any JSON value. */
export function resourceResult(returned: unknown, uri: string, mimeType: string | undefined): ReadResourceResult {
  if (isRecord(returned) && Array.isArray(returned.contents)) {
    return returned as unknown as ReadResourceResult; // the author built the wire object; the SDK validates it
  }
  if (returned instanceof Uint8Array) {
    const blob = Buffer.from(returned.buffer, returned.byteOffset, returned.byteLength).toString("base64");
    return { contents: [{ uri, mimeType: mimeType ?? "application/octet-stream", blob }] };
  }
  if (typeof returned === "string") return { contents: [{ uri, mimeType: mimeType ?? "text/plain", text: returned }] };
  const json = toJson(returned, `resource ${uri}`);
  return { contents: [{ uri, mimeType: mimeType ?? "application/json", text: JSON.stringify(json) }] };
}

/** Turns what a prompt's handler returned into the wire result: one user message, or a list of messages. */
export function promptResult(returned: unknown, description: string | undefined): GetPromptResult {
  if (isRecord(returned) && Array.isArray(returned.messages)) {
    return returned as unknown as GetPromptResult; // the author built the wire object; the SDK validates it
  }
  const about = description === undefined ? {} : { description };
  const message = (item: unknown): GetPromptResult["messages"][number] =>
    isRecord(item) && (item.role === "user" || item.role === "assistant")
      ? {
          role: item.role,
          content: typeof item.content === "string" ? { type: "text", text: item.content } : (item.content as never), // the SDK validates it
        }
      : { role: "user", content: { type: "text", text: asText(toJson(item, "prompt")) } };
  return { ...about, messages: Array.isArray(returned) ? returned.map(message) : [message(returned)] };
}
