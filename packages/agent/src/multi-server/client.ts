import type { ToolMessage } from "@langchain/core/messages";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import {
  type CatalogResource,
  type CatalogResourceTemplate,
  type CatalogTool,
  createClient,
  type ElicitationHandler,
  type ResourceBlob,
  type ServerInfo,
  type ToolResult,
  type ToolRuntime,
} from "@tenon/client";
import { ConfigError } from "@tenon/core";
import type { McpTool } from "../tool/mcp-tool.ts";
import { type AgentClient, type AgentInterceptor, toolOf } from "../tool/tools.ts";
import { type CheckedConfig, checkConfig } from "./config.ts";
import { type ContentOptions, contentsOf, handlingOf, promptContent, showResult } from "./content.ts";
import { tellFailures } from "./failures.ts";
import { hooksInterceptor } from "./hooks.ts";
import { eventsFor, isLevel, type LogLevels, logLevels } from "./listeners.ts";
import { checkHeaders, type Names, type NamesOrOptions, namesOf } from "./requests.ts";
import { type ServerSession, sessionOf } from "./session.ts";
import type { Connection, MultiServerConfig, RequestHeaders } from "./types.ts";

/** A resource as a server lists it. */
export interface ListedResource {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** A resource template as a server lists it. */
export interface ListedResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** Content of a resource: one of `text` and `blob` (base64). */
export interface ResourceContent {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
}

function listed(item: CatalogResource | CatalogResourceTemplate) {
  return {
    name: item.title ?? item.name,
    ...(item.description !== undefined && { description: item.description }),
    ...(item.mimeType !== undefined && { mimeType: item.mimeType }),
  };
}

/**
 * Several MCP servers as LangChain tools, with the configuration and the methods that users of `@langchain/mcp-adapters`
 * know. Nothing is connected until it is used; after `close()` the next use opens it again. What differs is in
 * docs/migrating.md.
 *
 * @example
 * const client = new MultiServerMCPClient({
 *   mcpServers: { math: { command: "node", args: ["math.js"] }, weather: { url: "http://127.0.0.1:8000/mcp" } },
 * });
 * const agent = createAgent({ model, tools: await client.getTools() });
 * @throws ConfigError `unknown_option` with "did you mean", `unsupported_option` naming the alternative, `invalid_option`
 */
export class MultiServerMCPClient {
  readonly #checked: CheckedConfig;
  readonly #levels: LogLevels;
  readonly #running = new Map<string, unknown>();
  #client: AgentClient | undefined;

  constructor(config: MultiServerConfig | Readonly<Record<string, Connection>>) {
    this.#checked = checkConfig(config);
    const { onMessage, callbacks, logLevel = "info" } = this.#checked.config;
    this.#levels = logLevels(logLevel, Boolean(onMessage || callbacks?.onLoggingMessage));
    this.#client = this.#create(); // wrong options are found here, not at first use
  }

  /** A copy of the configuration, without its functions. */
  get config(): unknown {
    return JSON.parse(JSON.stringify(this.#checked.config));
  }

  /**
   * The tools of the named servers, or of all, as LangChain tools.
   * @param args names, or a list of names and headers that go with every call of these tools
   * @throws ConnectionError for a server that cannot be reached, unless `onConnectionError` says otherwise;
   *   ConfigError `name_collision` when two tools have one name
   */
  async getTools(...servers: string[]): Promise<McpTool[]>;
  async getTools(servers: readonly string[], options?: RequestHeaders): Promise<McpTool[]>;
  async getTools(...args: NamesOrOptions): Promise<McpTool[]> {
    const { servers, options } = namesOf(args);
    const catalog = await this.#list(servers);
    return catalog.map((entry) => this.#tool(entry, options));
  }

  /** Connects to all servers now. @returns the tools of each server that was reached */
  async initializeConnections(options: RequestHeaders = {}): Promise<Record<string, McpTool[]>> {
    const catalog = await this.#list([]);
    const tools: Record<string, McpTool[]> = {};
    for (const { server, health } of this.servers()) if (health === "up") tools[server] = [];
    for (const entry of catalog) tools[entry.server]?.push(this.#tool(entry, checkHeaders(options)));
    return tools;
  }

  /** The session with one server, or undefined when it cannot be reached and that is to be ignored. */
  async getClient(server: string, options: RequestHeaders = {}): Promise<ServerSession | undefined> {
    await this.#list([server]);
    const info = this.servers().find((one) => one.server === server);
    return info?.health === "up" ? sessionOf(() => this.#open(), server, checkHeaders(options)) : undefined;
  }

  async listResources(...servers: string[]): Promise<Record<string, ListedResource[]>>;
  async listResources(servers: readonly string[], options?: RequestHeaders): Promise<Record<string, ListedResource[]>>;
  async listResources(...args: NamesOrOptions): Promise<Record<string, ListedResource[]>> {
    const found = await this.#open().listResources(...this.#wanted(namesOf(args).servers));
    return this.#byServer(args, found, (item) => ({ uri: item.uri, ...listed(item) }));
  }

  async listResourceTemplates(...servers: string[]): Promise<Record<string, ListedResourceTemplate[]>>;
  async listResourceTemplates(
    servers: readonly string[],
    options?: RequestHeaders,
  ): Promise<Record<string, ListedResourceTemplate[]>>;
  async listResourceTemplates(...args: NamesOrOptions): Promise<Record<string, ListedResourceTemplate[]>> {
    const found = await this.#open().listResourceTemplates(...this.#wanted(namesOf(args).servers));
    return this.#byServer(args, found, (item) => ({ uriTemplate: item.uriTemplate, ...listed(item) }));
  }

  /** Reads one resource; a server may answer with several contents. */
  async readResource(server: string, uri: string, options: RequestHeaders = {}): Promise<ResourceContent[]> {
    const { headers } = checkHeaders(options);
    const blobs = await this.#open().readResources(server, [uri], headers ? { headers: { ...headers } } : {});
    // contentsOf writes these keys
    return blobs.map((blob) => contentsOf(blob) as unknown as ResourceContent);
  }

  /** The given resources of a server, or all it lists; those of all servers when none is named. */
  async getResources(server?: string, options: { uris?: string | readonly string[] } = {}): Promise<ResourceBlob[]> {
    const client = this.#open();
    if (server !== undefined) {
      const { uris } = options;
      return [...(await client.readResources(server, typeof uris === "string" ? [uris] : uris))];
    }
    if (options.uris !== undefined) {
      throw new ConfigError(
        "getResources(undefined, { uris }) does not say whose resources these are; name the server",
        {
          code: "invalid_option",
        },
      );
    }
    // what is listed is what can be reached; a server that is down is left out, or an error where it is required
    const wanted = new Map<string, string[]>();
    for (const { server: name, uri } of await client.listResources()) {
      wanted.set(name, [...(wanted.get(name) ?? []), uri]);
    }
    const read = [...wanted].map(([name, uris]) => client.readResources(name, uris));
    return (await Promise.all(read)).flat();
  }

  /** A prompt of a server as messages. */
  async getPrompt(
    server: string,
    name: string,
    options: { arguments?: Record<string, string> } = {},
  ): Promise<BaseMessage[]> {
    const messages = await this.#open().getPrompt(server, name, options.arguments ?? {});
    const content = this.#content(server);
    return Promise.all(
      messages.map(async (message) => {
        const fields = { content: await promptContent(message.content, content) };
        return message.role === "user" ? new HumanMessage(fields) : new AIMessage(fields);
      }),
    );
  }

  /**
   * The least severe log messages wanted, of all servers or of one. On a connection of the older revision that already sends
   * messages, a less severe level takes effect when it is next opened.
   */
  async setLoggingLevel(level: string): Promise<void>;
  async setLoggingLevel(server: string, level: string): Promise<void>;
  async setLoggingLevel(first: string, second?: string): Promise<void> {
    const level = second ?? first;
    if (!isLevel(level))
      throw new ConfigError(`there is no log level ${JSON.stringify(level)}`, { code: "invalid_option" });
    this.#levels.set(level, second === undefined ? undefined : first);
  }

  /** State of the servers: which are up, why the others are not, which tools were left out. */
  servers(): readonly ServerInfo[] {
    return this.#open().servers();
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(): AgentClient {
    this.#client ??= this.#create();
    return this.#client;
  }

  #create(): AgentClient {
    const { config, servers } = this.#checked;
    const levels = this.#levels;
    const required = (config.onConnectionError ?? "throw") === "throw";
    const asked = config.callbacks?.onElicitation;
    const elicitation: ElicitationHandler | "interrupt" | undefined = asked
      ? (request, { server, tool }) =>
          asked(request, { serverName: server, ...(tool !== undefined && { toolName: tool }) })
      : config.elicitation;
    const prefix = config.additionalToolNamePrefix ? `${config.additionalToolNamePrefix}__` : "";
    const plain = prefix === "" && !config.prefixToolNameWithServerName;
    const watch: AgentInterceptor = async (request, next) => {
      this.#running.set(request.callId, request.args);
      try {
        return await next(request);
      } finally {
        this.#running.delete(request.callId);
      }
    };
    const hooks = config.beforeToolCall || config.afterToolCall;
    const show = (server: string, result: ToolResult) => showResult(result, this.#content(server));
    return createClient<ToolRuntime, ToolMessage | Command>({
      servers: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, { required, ...server }])),
      interceptors: [
        ...(hooks ? [hooksInterceptor(config, show)] : []),
        ...(config.toolInterceptors ?? []),
        ...(config.onProgress ? [watch] : []), // innermost: sees the arguments as they are sent
      ],
      events: eventsFor(config, levels, (callId) => (callId === undefined ? undefined : this.#running.get(callId))),
      ...(elicitation && { elicitation }),
      naming: plain
        ? "plain"
        : (server, tool) => `${prefix}${config.prefixToolNameWithServerName ? `${server}__` : ""}${tool}`,
      // read with every request
      get logLevel() {
        return levels.asked;
      },
    });
  }

  #content(server: string): ContentOptions {
    const { config } = this.#checked;
    return {
      standard: config.useStandardContentBlocks === true,
      handling: handlingOf(config.outputHandling, config.mcpServers[server]?.outputHandling),
      read: (uri) => this.#open().readResources(server, [uri]),
    };
  }

  #tool(entry: CatalogTool, { headers }: RequestHeaders): McpTool {
    const { config } = this.#checked;
    const content = this.#content(entry.server);
    const client: Pick<AgentClient, "callTool" | "elicitation"> = {
      elicitation: this.#open().elicitation,
      callTool: (...call) => this.#open().callTool(...call), // the tool outlives a close()
    };
    return toolOf(client, entry, {
      toolErrors: config.handleToolErrors === undefined ? undefined : config.handleToolErrors ? "return" : "throw",
      provider: config.provider,
      replay: config.legacyQuestions === "replay",
      show: (result) => showResult(result, content),
      timeoutMs: config.mcpServers[entry.server]?.defaultToolTimeout ?? config.defaultToolTimeout,
      headers: headers && { ...headers },
    });
  }

  /** The catalog of the named servers, with failures told as configured. */
  async #list(servers: Names): Promise<readonly CatalogTool[]> {
    const client = this.#open();
    const catalog = await client.listTools(...servers).catch((error: unknown) => {
      if (!(error instanceof ConfigError) || error.code !== "name_collision") throw error;
      const instead = "Set prefixToolNameWithServerName: true";
      const message = error.message.replace(/ Use naming .*$/s, ` ${instead}`);
      throw new ConfigError(message, { code: error.code, data: error.data, cause: error });
    });
    const infos = client.servers().filter(({ server }) => servers.length === 0 || servers.includes(server));
    tellFailures(this.#checked.config, infos, catalog);
    return catalog;
  }

  #wanted(servers: Names): Names {
    return servers.length > 0 ? servers : Object.keys(this.#checked.servers);
  }

  #byServer<T extends { readonly server: string }, R>(
    args: NamesOrOptions,
    found: readonly T[],
    show: (item: T) => R,
  ): Record<string, R[]> {
    const up = new Set(this.servers().flatMap(({ server, health }) => (health === "up" ? [server] : [])));
    const asked = this.#wanted(namesOf(args).servers).filter((server) => up.has(server));
    const lists: Record<string, R[]> = Object.fromEntries(asked.map((server) => [server, []]));
    for (const item of found) lists[item.server]?.push(show(item));
    return lists;
  }
}
