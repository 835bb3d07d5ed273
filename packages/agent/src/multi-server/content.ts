import type { MessageContent } from "@langchain/core/messages";
import type { PromptMessage, ResourceBlob, ToolResult } from "@tenon/client";
import { isRecord } from "@tenon/core";
import type { ShownResult } from "../tool/messages.ts";
import { CONTENT_KINDS, type ContentKind, type OutputHandling } from "./types.ts";

/** A content block as LangChain's messages take it. */
export type Block = Record<string, unknown>;
type McpBlock = PromptMessage["content"];

/** How answers are shown. */
export interface ContentOptions {
  readonly standard: boolean;
  readonly handling: Partial<Record<ContentKind, "content" | "artifact">>;
  /** Reads a resource that an answer only names. */
  readonly read: (uri: string) => Promise<readonly ResourceBlob[]>;
}

/** One setting over another: what the later one does not say stays. */
export function handlingOf(...settings: (OutputHandling | undefined)[]): ContentOptions["handling"] {
  return Object.assign(
    {},
    ...settings.map((setting) =>
      typeof setting === "string" ? Object.fromEntries(CONTENT_KINDS.map((kind) => [kind, setting])) : setting,
    ),
  );
}

function fileOf(resource: Record<string, unknown>): Block {
  const about = {
    mime_type: resource.mimeType,
    ...(resource.uri !== undefined && { metadata: { uri: resource.uri } }),
  };
  return typeof resource.text === "string"
    ? { type: "file", source_type: "text", text: resource.text, ...about }
    : { type: "file", source_type: "base64", data: resource.blob, ...about };
}

/** A resource that was read, in the protocol's form. */
export function contentsOf(blob: ResourceBlob): Record<string, unknown> {
  const about = { uri: blob.uri, ...(blob.mimeType !== undefined && { mimeType: blob.mimeType }) };
  return blob.kind === "text"
    ? { ...about, text: blob.asString() }
    : { ...about, blob: Buffer.from(blob.asBytes()).toString("base64") };
}

/** The contents of an embedded resource; one that is only named is read. */
async function resourcesIn(block: McpBlock, options: ContentOptions): Promise<Record<string, unknown>[]> {
  const resource: Record<string, unknown> = "resource" in block && isRecord(block.resource) ? block.resource : {};
  const given = typeof resource.text === "string" || typeof resource.blob === "string";
  if (given || typeof resource.uri !== "string") return [resource];
  return (await options.read(resource.uri)).map(contentsOf);
}

async function shownBlocks(block: McpBlock, options: ContentOptions): Promise<Block[]> {
  switch (block.type) {
    case "text":
      return [{ type: "text", ...(options.standard && { source_type: "text" }), text: block.text }];
    case "image":
      return options.standard
        ? [{ type: "image", source_type: "base64", data: block.data, mime_type: block.mimeType }]
        : [{ type: "image_url", image_url: { url: `data:${block.mimeType};base64,${block.data}` } }];
    case "audio":
      return [{ type: "audio", source_type: "base64", data: block.data, mime_type: block.mimeType }];
    case "resource":
      return (await resourcesIn(block, options)).map(fileOf);
    case "resource_link":
      return [{ type: "file", source_type: "url", url: block.uri, mime_type: block.mimeType }];
    default:
      // a kind of content newer than this version: said, not dropped
      return [{ type: "text", text: JSON.stringify(block) }];
  }
}

async function keptBlocks(block: McpBlock, options: ContentOptions): Promise<Block[]> {
  if (options.standard) return shownBlocks(block, options);
  if (block.type !== "resource") return [{ ...block }];
  return (await resourcesIn(block, options)).map((resource) => ({ type: "resource", resource }));
}

/** Blocks as a message's content: one text alone is just that text. */
function contentFrom(blocks: readonly Block[]): MessageContent {
  const [first] = blocks;
  if (blocks.length === 0) return "";
  if (blocks.length === 1 && first?.type === "text" && typeof first.text === "string") return first.text;
  return blocks as MessageContent; // each block has a type
}

/**
 * A tool's answer: what the model sees, and a list of what it does not. Structured content and `_meta` close that list as
 * `{ type: "mcp_structured_content" | "mcp_meta", data }`.
 */
export async function showResult(
  result: ToolResult,
  options: ContentOptions,
): Promise<ShownResult & { readonly artifact: readonly Block[] }> {
  const placeOf = (type: string) =>
    options.handling[type as ContentKind] ?? (type === "resource" ? "artifact" : "content"); // absent for unknown kinds
  const at = async (place: string, show: typeof shownBlocks) => {
    const blocks = result.content.filter(({ type }) => placeOf(type) === place);
    return (await Promise.all(blocks.map((block) => show(block, options)))).flat();
  };
  const [content, kept] = await Promise.all([at("content", shownBlocks), at("artifact", keptBlocks)]);
  // what the protocol itself puts there is nothing the tool says
  const said = Object.entries(result.meta).filter(([key]) => !key.startsWith("io.modelcontextprotocol/"));
  const meta = Object.fromEntries(said);
  const artifact = [
    ...kept,
    ...(result.structured === undefined ? [] : [{ type: "mcp_structured_content", data: result.structured }]),
    ...(Object.keys(meta).length === 0 ? [] : [{ type: "mcp_meta", data: meta }]),
  ];
  return { content: contentFrom(content), artifact };
}

/** A prompt's content as a message's. */
export async function promptContent(block: McpBlock, options: ContentOptions): Promise<MessageContent> {
  return contentFrom(await shownBlocks(block, options));
}
