import type { CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult } from "@modelcontextprotocol/server";
import { type Era, isRecord, type Json, type Schema, TenonError } from "@tenon/core";
import { describeIssues, toJson, validate } from "@tenon/core/internal";
import { ToolError } from "../errors.ts";
import { blockProblem, contentsProblem, isCallToolResult, isContent } from "./content.ts";

/** Bytes of one result unless the server says otherwise. */
export const MAX_RESULT_BYTES = 8 * 1024 * 1024;

/** A handler returned something other than it declared: the author's mistake, masked for the caller, loud in the log. */
class ReturnedValueError extends TenonError {}

/** A result too large to send: the caller learns the limit, since only it can ask for less. */
export class ResultTooLargeError extends ToolError {
  constructor(what: string, bytes: number, limit: number) {
    const mib = (n: number): string => `${(n / 1024 / 1024).toFixed(n < limit * 2 ? 2 : 1)} MiB`;
    super(`${what} is too large: more than ${mib(bytes)} (limit ${mib(limit)}). Ask for less, or in parts`, {
      code: "result_too_large",
      data: { code: "result_too_large", limitBytes: limit },
    });
  }
}

/** Structured content must be an object for legacy peers: anything else travels as `{ result: value }` there. */
function structuredFor(era: Era, value: unknown): unknown {
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

function wrong(what: string, problem: string | undefined): void {
  if (problem)
    throw new ReturnedValueError(`${what} returned a malformed value: ${problem}`, { code: "malformed_result" });
}

/** Refuses a result whose text is larger than the limit; counts strings, which are all that can be large. */
function bounded<T>(what: string, result: T, limit: number): T {
  let bytes = 0;
  const count = (value: unknown): void => {
    if (typeof value === "string") bytes += Buffer.byteLength(value);
    else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        bytes += Array.isArray(value) ? 1 : key.length + 4;
        count(item);
      }
    } else bytes += 4;
    if (bytes > limit) throw new ResultTooLargeError(`The result of ${what}`, bytes, limit);
  };
  count(result);
  return result;
}

async function checkOutput(name: string, output: Schema, value: unknown): Promise<unknown> {
  const checked = await validate(output, value);
  if (!checked.issues) return checked.value;
  throw new ReturnedValueError(
    `Tool ${name} returned a value that does not match its output schema: ${describeIssues(checked.issues)}`,
    { code: "output_mismatch" },
  );
}

/** A failed call as the model reads it. */
export function failedCall(text: string, data?: Json): CallToolResult {
  return { content: [{ type: "text", text }], ...(isRecord(data) && { structuredContent: data }), isError: true };
}

/** A wire result the author built: checked, and its structured content held to the declared output. */
async function builtResult(
  returned: CallToolResult,
  tool: { name: string; output?: Schema | undefined },
  era: Era,
): Promise<CallToolResult> {
  const { isError } = returned;
  if (isError !== undefined && typeof isError !== "boolean") {
    wrong(`Tool ${tool.name}`, `isError: expected true or false, got ${typeof isError}`);
  }
  returned.content.forEach((block, i) => void wrong(`Tool ${tool.name}`, blockProblem(block, `content[${i}]`)));
  const { structuredContent, ...rest } = returned;
  const value =
    tool.output !== undefined && returned.isError !== true
      ? await checkOutput(tool.name, tool.output, structuredContent)
      : structuredContent;
  return {
    ...(toJson(rest, `result of ${tool.name}`) as unknown as CallToolResult), // JSON of what was checked above
    ...(value !== undefined && {
      structuredContent: structuredFor(era, toJson(value, `result of ${tool.name}`)) as Record<string, unknown>, // toJson made it JSON
    }),
  };
}

/**
 * Turns what a tool's handler returned into the wire result.
 * @param maxBytes the largest result that may leave
 * @throws TenonError when the value is not JSON (naming the path), does not match the declared output, or is too large
 */
export async function toolResult(
  returned: unknown,
  tool: { name: string; output?: Schema | undefined },
  era: Era,
  maxBytes = MAX_RESULT_BYTES,
): Promise<CallToolResult> {
  const what = `Tool ${tool.name}`;
  if (!isContent(returned) && isCallToolResult(returned)) {
    return bounded(what, await builtResult(returned, tool, era), maxBytes);
  }
  const blocks = isContent(returned) ? [...returned.blocks] : undefined;
  let value: unknown = isContent(returned) ? returned.structured : returned;
  if (tool.output !== undefined) value = await checkOutput(tool.name, tool.output, value);
  const json = value === undefined ? undefined : toJson(value, `result of ${tool.name}`);
  // a scalar is typed for programs only where the era's result can hold it without being declared: in an object
  const inferred = typeof json === "object" ? json !== null && (era === "modern" || isRecord(json)) : era === "legacy";
  const content: ContentBlock[] = blocks ?? (json === undefined ? [] : [{ type: "text", text: asText(json) }]);
  const result = {
    content,
    ...(json !== undefined &&
      (tool.output !== undefined || inferred) && {
        structuredContent: structuredFor(era, json) as Record<string, unknown>, // toJson made it JSON
      }),
  };
  // as text and as structure, three bytes a character: most results are small and need no counting
  const [only] = content;
  const small = blocks === undefined && (only?.type !== "text" || only.text.length * 6 <= maxBytes);
  return small ? result : bounded(what, result, maxBytes);
}

/**
 * Turns what a resource's handler returned into the wire result: text, bytes, a content helper, or any JSON value.
 * @throws TenonError for a malformed wire object, naming the path, and for a result that is too large
 */
export function resourceResult(
  returned: unknown,
  uri: string,
  mimeType: string | undefined,
  maxBytes = MAX_RESULT_BYTES,
): ReadResourceResult {
  const what = `Resource ${uri}`;
  if (isRecord(returned) && Array.isArray(returned.contents)) {
    returned.contents.forEach((contents, i) => void wrong(what, contentsProblem(contents, `contents[${i}]`)));
    return bounded(what, toJson(returned, what) as unknown as ReadResourceResult, maxBytes); // its contents were checked
  }
  if (isContent(returned)) {
    const contents = returned.blocks.map((block) => {
      if (block.type === "text") return { uri, mimeType: mimeType ?? "text/plain", text: block.text };
      if ("data" in block) return { uri, mimeType: block.mimeType, blob: block.data };
      if (block.type === "resource") return block.resource;
      throw new ReturnedValueError(`${what} returned a link; return what it points at`, { code: "malformed_result" });
    });
    return bounded(what, { contents }, maxBytes);
  }
  if (returned instanceof Uint8Array) {
    const blob = Buffer.from(returned.buffer, returned.byteOffset, returned.byteLength).toString("base64");
    return bounded(what, { contents: [{ uri, mimeType: mimeType ?? "application/octet-stream", blob }] }, maxBytes);
  }
  const text = typeof returned === "string" ? returned : JSON.stringify(toJson(returned, `resource ${uri}`));
  const type = mimeType ?? (typeof returned === "string" ? "text/plain" : "application/json");
  return bounded(what, { contents: [{ uri, mimeType: type, text }] }, maxBytes);
}

/** The messages one returned item stands for; content of several blocks becomes one message each. */
function messagesOf(item: unknown, what: string, path: string): GetPromptResult["messages"] {
  const spread = (role: "user" | "assistant", content: unknown): GetPromptResult["messages"] => {
    if (typeof content === "string") return [{ role, content: { type: "text", text: content } }];
    if (isContent(content)) return content.blocks.map((block) => ({ role, content: block }));
    wrong(what, blockProblem(content, `${path}.content`));
    return [{ role, content: toJson(content, `${what}: ${path}.content`) as unknown as ContentBlock }]; // just checked
  };
  if (isRecord(item) && (item.role === "user" || item.role === "assistant")) return spread(item.role, item.content);
  if (isRecord(item) && typeof item.role === "string" && "content" in item) {
    wrong(what, `${path}.role: expected "user" or "assistant", got ${JSON.stringify(item.role)}`);
  }
  if (isContent(item)) return spread("user", item);
  return spread("user", asText(toJson(item, what)));
}

/**
 * Turns what a prompt's handler returned into the wire result: one user message, or a list of messages.
 * @throws TenonError for a malformed message, naming the path, and for a result that is too large
 */
export function promptResult(
  returned: unknown,
  description: string | undefined,
  name = "",
  maxBytes = MAX_RESULT_BYTES,
): GetPromptResult {
  const what = `Prompt ${name}`;
  const built = isRecord(returned) && Array.isArray(returned.messages) ? returned : undefined;
  const items: unknown[] = built ? (built.messages as unknown[]) : Array.isArray(returned) ? returned : [returned]; // checked above
  const messages = items.flatMap((item, i) => messagesOf(item, what, `messages[${i}]`));
  const about = built && typeof built.description === "string" ? built.description : description;
  return bounded(
    what,
    {
      ...(about !== undefined && { description: about }),
      ...(built && isRecord(built._meta) && { _meta: built._meta }),
      messages,
    },
    maxBytes,
  );
}
