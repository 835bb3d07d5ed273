import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";

const brand = Symbol("tenon.content");

/** What the content helpers return: blocks that go out as they are. */
export interface Content {
  readonly [brand]: true;
  readonly blocks: readonly ContentBlock[];
  readonly structured?: unknown;
}

function make(blocks: readonly ContentBlock[], structured?: unknown): Content {
  return { [brand]: true, blocks, ...(structured !== undefined && { structured }) };
}

export function isContent(value: unknown): value is Content {
  return typeof value === "object" && value !== null && brand in value;
}

const base64 = (data: Uint8Array | string): string =>
  typeof data === "string" ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");

/**
 * Text for the model beside an object for programs.
 * @param structured becomes `structuredContent`
 */
export function text(value: string, structured?: object): Content {
  return make([{ type: "text", text: value }], structured);
}

/** @param data bytes, or base64 text */
export function image(data: Uint8Array | string, mimeType: string): Content {
  return make([{ type: "image", data: base64(data), mimeType }]);
}

/** @param data bytes, or base64 text */
export function audio(data: Uint8Array | string, mimeType: string): Content {
  return make([{ type: "audio", data: base64(data), mimeType }]);
}

/** A file inside the answer: text, or bytes that travel as base64. */
export function file(uri: string, data: Uint8Array | string, mimeType?: string): Content {
  const about = { uri, ...(mimeType !== undefined && { mimeType }) };
  const resource = typeof data === "string" ? { ...about, text: data } : { ...about, blob: base64(data) };
  return make([{ type: "resource", resource }]);
}

/** A pointer to a resource that the client may read. */
export function link(uri: string, name: string, about: { description?: string; mimeType?: string } = {}): Content {
  return make([{ type: "resource_link", uri, name, ...about }]);
}

/**
 * Several parts in one answer, strings among them.
 * @example return content(["Here it is:", image(png, "image/png")])
 */
export function content(parts: ReadonlyArray<Content | string>, structured?: object): Content {
  const blocks = parts.flatMap((part) =>
    typeof part === "string" ? [{ type: "text" as const, text: part }] : part.blocks,
  );
  const inherited = parts.map((part) => (typeof part === "string" ? undefined : part.structured));
  return make(blocks, structured ?? inherited.findLast((value) => value !== undefined));
}

/** A full tool result, for authors who build the wire object themselves. */
export function isCallToolResult(value: unknown): value is CallToolResult {
  return (
    typeof value === "object" &&
    value !== null &&
    "content" in value &&
    Array.isArray(value.content) &&
    value.content.every((block) => typeof block === "object" && block !== null && "type" in block)
  );
}
