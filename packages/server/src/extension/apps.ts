import { readFile } from "node:fs/promises";
import type { McpUiResourceMeta, McpUiToolMeta } from "@modelcontextprotocol/ext-apps";
import {
  EXTENSION_ID,
  getUiCapability,
  RESOURCE_MIME_TYPE,
  RESOURCE_URI_META_KEY,
} from "@modelcontextprotocol/ext-apps/server";
import { ConfigError, type Schema } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { ANNOTATION_HINTS, TOOL_OPTIONS } from "../definition/compile.ts";
import type { ClientDescription, TenonServer, ToolHandler, ToolOptions } from "../index.ts";

/** A view: one HTML page that a host shows in a sandbox beside the tools that belong to it. */
export interface AppOptions {
  /** `ui://…`, unique within the server. */
  uri: string;
  /** Shown to people who review the server. Default: the URI. */
  name?: string;
  /** What the page shows, for people who review the server. */
  description?: string;
  /** The page: text, a file, or a function that makes it anew for every read. */
  html: string | URL | (() => string | Promise<string>);
  /** Origins the page may reach or load from. Left out: none. */
  csp?: McpUiResourceMeta["csp"];
  /** Camera, microphone, geolocation or clipboard, if the page needs them. */
  permissions?: McpUiResourceMeta["permissions"];
  /** A stable origin of its own, where the host gives one. */
  domain?: string;
  /** Whether the page wants a border and a background around it. Default: as the host likes. */
  prefersBorder?: boolean;
}

/** Who may call a tool of a view: the model, the page, or both (default). */
type Visibility = NonNullable<McpUiToolMeta["visibility"]>;

/** What a tool of a view says about itself. */
export type AppToolOptions<I extends Schema | undefined, O extends Schema | undefined> = ToolOptions<I, O> & {
  /** Who may call it: the model, the page, or both (default). */
  visibility?: Visibility;
};

/** A view that has been added to a server. */
export interface App<Lifespan> {
  readonly uri: string;
  /** Adds a tool whose result the view shows. */
  tool<I extends Schema | undefined = undefined, O extends Schema | undefined = undefined>(
    name: string,
    options: AppToolOptions<I, O>,
    handler: ToolHandler<I, O, Lifespan>,
  ): App<Lifespan>;
}

/** Servers that advertise the extension already: a second view does not add it again. */
const advertised = new WeakSet<object>();

/** Whether the client shows views; where it does not, a tool's text must say everything. */
export function showsApps(client: ClientDescription): boolean {
  return getUiCapability(client.capabilities)?.mimeTypes?.includes(RESOURCE_MIME_TYPE) ?? false;
}

async function htmlOf(html: AppOptions["html"]): Promise<string> {
  if (typeof html === "function") return html();
  return typeof html === "string" ? html : readFile(html, "utf8");
}

/**
 * Adds a view (SEP-1865, `io.modelcontextprotocol/ui`) to a server: the page as a `ui://` resource with its security
 * metadata, and the capability.
 *
 * @throws ConfigError for a URI that is not `ui://…` or is taken
 * @example app(server, { uri: "ui://budget/view", html: new URL("view.html", import.meta.url) }).tool("budget", {}, () => rows)
 */
export function app<Lifespan>(server: TenonServer<Lifespan>, options: AppOptions): App<Lifespan> {
  checkOptions(
    options,
    ["uri", "name", "description", "html", "csp", "permissions", "domain", "prefersBorder"],
    "app(server, options)",
  );
  const { uri, name, description, html, csp, permissions, domain, prefersBorder } = options;
  if (!uri.startsWith("ui://")) {
    throw new ConfigError(`The view "${uri}" must have a URI that begins with ui://, such as "ui://budget/view.html"`, {
      code: "uri",
    });
  }
  const ui: McpUiResourceMeta = {
    ...(csp && { csp }),
    ...(permissions && { permissions }),
    ...(domain !== undefined && { domain }),
    ...(prefersBorder !== undefined && { prefersBorder }),
  };
  const _meta = { ui };
  server.resource(
    uri,
    {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      mimeType: RESOURCE_MIME_TYPE,
      meta: _meta,
    },
    // the content's metadata beats the listing's, so a host that reads without listing sees the same limits
    async () => ({ contents: [{ uri, mimeType: RESOURCE_MIME_TYPE, text: await htmlOf(html), _meta }] }),
  );
  if (!advertised.has(server)) {
    advertised.add(server);
    server.extension({ id: EXTENSION_ID });
  }
  const view: App<Lifespan> = {
    uri,
    tool(toolName, given, handler) {
      checkOptions(given, [...TOOL_OPTIONS, "visibility"], `view "${uri}", tool "${toolName}"`, ANNOTATION_HINTS);
      const { visibility, ...toolOptions } = given;
      const meta = {
        ...toolOptions.meta,
        ui: { resourceUri: uri, ...(visibility && { visibility }) },
        [RESOURCE_URI_META_KEY]: uri, // hosts from before the extension was final read this key
      };
      server.tool(toolName, { ...toolOptions, meta } as typeof toolOptions, handler); // the same options with more in `meta`
      return view;
    },
  };
  return view;
}
