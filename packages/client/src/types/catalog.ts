import type { ContentBlock, ToolAnnotations } from "@modelcontextprotocol/client";
import type { JsonObject } from "@tenon/core";

/** How model-side names are made: `prefixed` is `mcp_{server}_{tool}`, `plain` is the tool's own name. */
export type Naming = "prefixed" | "plain" | ((server: string, tool: string) => string);

/** A tool of the merged catalog. */
export interface CatalogTool {
  /** What the model sees: `^[A-Za-z0-9_-]{1,64}$`, unique in the catalog, the same on every run. */
  readonly name: string;
  readonly server: string;
  /** What the server calls it. */
  readonly wireName: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly annotations: ToolAnnotations;
  /** Whether its server may make a task of a call, or always does; absent where it never does. */
  readonly task?: "optional" | "required";
  readonly meta: Readonly<Record<string, unknown>>;
}

/** Content of one resource. */
export interface ResourceBlob {
  readonly server: string;
  readonly uri: string;
  readonly mimeType?: string;
  /** How the server sent it. */
  readonly kind: "text" | "bytes";
  asString(): string;
  asBytes(): Uint8Array;
}

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

/** A prompt of a server. */
export interface CatalogPrompt {
  readonly server: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: ReadonlyArray<{
    readonly name: string;
    readonly description?: string;
    readonly required: boolean;
  }>;
}

/** A family of resources, with an address that has places to fill (RFC 6570). */
export interface CatalogResourceTemplate {
  readonly server: string;
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** A resource of a server. */
export interface CatalogResource {
  readonly server: string;
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}
