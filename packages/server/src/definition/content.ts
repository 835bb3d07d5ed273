import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";

// registered, so that content made by another copy of this module is still content
const brand = Symbol.for("tenon.content");

/** What the content helpers return: blocks that go out as they are. */
export interface Content {
  readonly [brand]: true;
  readonly blocks: readonly ContentBlock[];
  readonly structured?: unknown;
}

/** @internal Blocks as content; the public helpers make the blocks too. */
export function make(blocks: readonly ContentBlock[], structured?: unknown): Content {
  return { [brand]: true, blocks, ...(structured !== undefined && { structured }) };
}

/** Whether one of the content helpers made `value`. */
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

/** A picture in the answer. @param data bytes, or base64 text */
export function image(data: Uint8Array | string, mimeType: string): Content {
  return make([{ type: "image", data: base64(data), mimeType }]);
}

/** Sound in the answer. @param data bytes, or base64 text */
export function audio(data: Uint8Array | string, mimeType: string): Content {
  return make([{ type: "audio", data: base64(data), mimeType }]);
}

/** A file inside the answer: text, or bytes that travel as base64. */
export function file(uri: string, data: Uint8Array | string, mimeType?: string): Content {
  const about = { uri, ...(mimeType !== undefined && { mimeType }) };
  const resource = typeof data === "string" ? { ...about, text: data } : { ...about, blob: base64(data) };
  return make([{ type: "resource", resource }]);
}

/** A pointer to a resource that the client may read. @throws ConfigError for an unknown key of `about` */
export function link(uri: string, name: string, about: { description?: string; mimeType?: string } = {}): Content {
  checkOptions(about, ["description", "mimeType"], "link(uri, name, about)");
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

const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource: [],
  resource_link: ["uri", "name"],
};
const RESULT_KEYS = new Set(["content", "structuredContent", "isError", "_meta", "resultType"]);

/**
 * What is wrong with a content block somebody built by hand; undefined when nothing is.
 * @param path how the block is called, such as `content[0]`
 */
export function blockProblem(block: unknown, path: string): string | undefined {
  if (!isRecord(block)) return `${path}: expected a content block, got ${JSON.stringify(block) ?? typeof block}`;
  const fields = Object.hasOwn(BLOCKS, String(block.type)) ? BLOCKS[String(block.type)] : undefined;
  if (!fields) return `${path}.type: expected ${Object.keys(BLOCKS).join(", ")}, got ${JSON.stringify(block.type)}`;
  const wrong = fields.find((field) => typeof block[field] !== "string");
  if (wrong) return `${path}.${wrong}: expected a string, got ${typeof block[wrong]}`;
  return block.type === "resource" ? contentsProblem(block.resource, `${path}.resource`) : undefined;
}

/** What is wrong with the contents of a resource somebody built by hand; undefined when nothing is. */
export function contentsProblem(contents: unknown, path: string): string | undefined {
  if (!isRecord(contents)) return `${path}: expected { uri, text } or { uri, blob }`;
  if (typeof contents.uri !== "string") return `${path}.uri: expected a string, got ${typeof contents.uri}`;
  if (contents.mimeType !== undefined && typeof contents.mimeType !== "string") {
    return `${path}.mimeType: expected a string, got ${typeof contents.mimeType}`;
  }
  const body = ["text", "blob"].filter((field) => typeof contents[field] === "string");
  return body.length === 1 ? undefined : `${path}: expected either text or blob as a string`;
}

/**
 * A full tool result, for authors who build the wire object themselves: only the protocol's keys, and blocks of its types. An
 * object that merely has a property `content` is data.
 */
export function isCallToolResult(value: unknown): value is CallToolResult {
  return (
    isRecord(value) &&
    Array.isArray(value.content) &&
    Object.keys(value).every((key) => RESULT_KEYS.has(key)) &&
    value.content.every((block) => isRecord(block) && Object.hasOwn(BLOCKS, String(block.type)))
  );
}
