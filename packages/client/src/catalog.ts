import { isRecord, type JsonObject, type ProtocolError, type TenonError } from "@tenon/core";
import type { Connection } from "./connection/connection.ts";
import type { Server } from "./connection/server.ts";
import { nameTools } from "./names.ts";
import { fetchAll, recordAt, textAt } from "./pages.ts";
import { headerProblem } from "./param-headers.ts";
import type { Gate } from "./trust/gate.ts";
import type { CatalogTool, Naming, ServerInfo } from "./types.ts";

/** A tool as its server describes it, before it has a model-side name. */
export type WireTool = Omit<CatalogTool, "name">;

type Problem = ServerInfo["problems"][number];

/** Reads one definition; a string says why it cannot be used. */
function parseTool(server: string, item: unknown, overHttp: boolean): WireTool | string {
  if (!isRecord(item)) return "the definition is not an object";
  if (typeof item.name !== "string" || item.name === "") return "it has no name";
  const schema = item.inputSchema;
  if (!isRecord(schema)) return "it has no inputSchema object";
  if (schema.type !== "object") {
    return `its inputSchema must have "type": "object", found ${JSON.stringify(schema.type) ?? "none"}`;
  }
  const { outputSchema } = item;
  if (outputSchema !== undefined && !isRecord(outputSchema)) return "its outputSchema is not an object";
  const problem = overHttp ? headerProblem(schema) : undefined;
  if (problem) return problem;
  const annotations = recordAt(item, "annotations");
  const title = textAt(item, "title") ?? textAt(annotations, "title");
  return Object.freeze({
    server,
    wireName: item.name,
    ...(title !== undefined && { title }),
    description: textAt(item, "description") ?? "",
    inputSchema: schema as JsonObject, // it came as JSON
    ...(outputSchema !== undefined && { outputSchema: outputSchema as JsonObject }), // it came as JSON
    annotations,
    meta: recordAt(item, "_meta"),
  });
}

/** The usable tools among raw definitions, by name in code-unit order, and what is wrong with the rest. */
export function parseTools(
  server: string,
  items: readonly unknown[],
  overHttp: boolean,
): { tools: WireTool[]; problems: Problem[] } {
  const tools = new Map<string, WireTool>();
  const problems: Problem[] = [];
  for (const [index, item] of items.entries()) {
    const name = isRecord(item) && typeof item.name === "string" && item.name !== "" ? item.name : `#${index + 1}`;
    const tool = parseTool(server, item, overHttp);
    if (typeof tool === "string") problems.push({ tool: name, reason: tool });
    else if (tools.has(name))
      problems.push({ tool: name, reason: "the server lists two tools with this name; the first is used" });
    else tools.set(name, tool);
  }
  const sorted = [...tools.values()].sort((a, b) => (a.wireName < b.wireName ? -1 : a.wireName > b.wireName ? 1 : 0));
  return { tools: sorted, problems };
}

/** The tools of one server, cached for as long as its connection and its own word allow. */
export class ToolList {
  readonly #server: Server;
  readonly #gate: Gate | undefined;
  #tools: readonly WireTool[] = [];
  #connection: Connection | undefined;
  #freshUntil = 0;
  #fetching: Promise<readonly WireTool[]> | undefined;

  constructor(server: Server, gate?: Gate) {
    this.#server = server;
    this.#gate = gate;
  }

  /** The tools as last seen. */
  get known(): readonly WireTool[] {
    return this.#tools;
  }

  /** Makes the next `get` ask the server. */
  expire(): void {
    this.#freshUntil = 0;
  }

  /** The present tools; asks the server unless the cache is fresh. Parallel callers share one request. */
  get(): Promise<readonly WireTool[]> {
    this.#fetching ??= this.#get().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #get(): Promise<readonly WireTool[]> {
    try {
      return await this.#server.use("tools/list", (connection) => this.#fetch(connection), true);
    } catch (error) {
      // `use` throws nothing else
      if (this.#server.info.health === "up") this.#server.report([], error as TenonError | ProtocolError);
      throw error;
    }
  }

  async #fetch(connection: Connection): Promise<readonly WireTool[]> {
    if (connection === this.#connection && Date.now() < this.#freshUntil) return this.#tools;
    // before the request: a change announced while it runs must not be lost
    this.#connection = connection;
    this.#freshUntil = Number.POSITIVE_INFINITY;
    connection.onToolsChanged = () => this.expire();
    try {
      const none = connection.sdk.getServerCapabilities()?.tools === undefined;
      const { items, ttlMs } = none ? { items: [] } : await fetchAll(connection, "tools/list");
      const overHttp = connection.era === "modern" && "url" in connection.config;
      const parsed = parseTools(this.#server.name, items, overHttp);
      const { tools, problems } = (await this.#gate?.admit(this.#server.name, parsed)) ?? parsed;
      if (connection.era === "modern")
        this.#freshUntil = Math.min(this.#freshUntil, Date.now() + Math.max(0, ttlMs ?? 0));
      this.#tools = tools;
      this.#server.report(problems);
      return tools;
    } catch (error) {
      this.expire();
      throw error;
    }
  }
}

/** Puts the lists of all servers into one catalog with model-side names. `servers` are all configured ids, in order. */
export function mergeTools(
  tools: readonly WireTool[],
  naming: Naming,
  servers: readonly string[],
): readonly CatalogTool[] {
  const names = nameTools(tools, naming, servers);
  return tools.map((tool, index) => Object.freeze({ name: names[index] ?? tool.wireName, ...tool }));
}
