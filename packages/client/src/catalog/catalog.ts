import { isDeepStrictEqual } from "node:util";
import type { Tool } from "@modelcontextprotocol/client";
import { ConfigError, ConnectionError, META, ProtocolError, type TenonError } from "@tenon/core";
import { IdentityChanged } from "../auth/refusal.ts";
import type { Connection } from "../connection/connection.ts";
import type { Endpoint } from "../connection/endpoint.ts";
import { bounded } from "../connection/time.ts";
import type { Gate } from "../trust/gate.ts";
import type { EndpointConfig } from "../types/servers.ts";
import { MAX_TTL_MS } from "./cache.ts";
import { type ListedOver, type Problem, parseTools, schemaProblems, type WireTool } from "./definitions.ts";
import { makeFilter, type ToolFilter } from "./filters.ts";
import { fetchAll } from "./pages.ts";
import { declaresHeaders } from "./param-headers.ts";

/** Milliseconds a first call waits for the definitions, and until a failed attempt is repeated. */
const PREPARE_MS = 5_000;
const AGAIN_MS = 60_000;
/** Milliseconds a list of the older revision is kept when its server does not announce changes. */
const UNANNOUNCED_MS = 60_000;
const MAX_DOUBTS = 1_000;

/** The tools of one server, cached for as long as its connection and its own word allow. */
export class ToolList {
  readonly #server: Endpoint;
  readonly #gate: Gate | undefined;
  /** By wire name, in the order of the list. */
  #all: ReadonlyMap<string, WireTool> = new Map();
  /** Definitions that the transport must know, by wire name: their parameters travel as headers too. */
  #mirrored: ReadonlyMap<string, Tool> = new Map();
  #offered: readonly WireTool[] = [];
  /** Whether the server the list came from makes tasks for this client. */
  #tasks = false;
  #ambiguous: ReadonlySet<string> = new Set();
  #problems: readonly Problem[] = [];
  readonly #doubts = new Map<string, Problem>();
  #filter: Promise<ToolFilter | undefined> | undefined;
  #connection: Connection | undefined;
  #freshUntil = 0;
  #tried = Number.NEGATIVE_INFINITY;
  #watched = false;
  #generation = 0;
  #fetching: Promise<readonly WireTool[]> | undefined;
  /** Of the present request: its list has arrived, whatever is still to be done with it. */
  #arriving: Promise<void> = Promise.resolve();

  constructor(server: Endpoint, gate?: Gate) {
    this.#server = server;
    this.#gate = gate;
  }

  /** The offered tools as last seen. */
  get known(): readonly WireTool[] {
    return this.#offered;
  }

  /** What is wrong with the list as last seen. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** The definition of a tool as last seen, offered or not. */
  find(name: string): WireTool | undefined {
    return this.#all.get(name);
  }

  /** Whether calls of a tool are tasks of a server of ours: such a server knows idempotency keys. */
  makesTasks(name: string): boolean {
    return this.#tasks && typeof this.find(name)?.meta[META.task] === "string";
  }

  /** The definition for the transport, where it has parameters that travel as headers too. */
  mirrored(name: string): Tool | undefined {
    return this.#mirrored.get(name);
  }

  /** The definition of a tool; the server is asked where it is not known yet. */
  async define(name: string): Promise<WireTool | undefined> {
    const known = this.find(name);
    if (known) return known;
    await this.get();
    return this.find(name);
  }

  /** Forgets everything: who asks from now on is somebody else. */
  reset(): void {
    this.#generation++;
    this.#connection = undefined;
    this.#fetching = undefined;
    this.#tried = Number.NEGATIVE_INFINITY;
    this.#all = new Map();
    this.#mirrored = new Map();
    this.#offered = [];
    this.#tasks = false;
    this.#ambiguous = new Set();
    this.#problems = [];
    this.#doubts.clear();
    this.expire();
  }

  /** Makes the next `get` ask the server. */
  expire(): void {
    this.#freshUntil = 0;
  }

  /** The present tools; asks the server unless the cache is fresh. Parallel callers share one request. */
  get(): Promise<readonly WireTool[]> {
    // a request under way may be somebody else's
    return this.#server.identifies ? this.#server.identify().then(() => this.#join()) : this.#join();
  }

  #join(): Promise<readonly WireTool[]> {
    if (this.#fetching) return this.#fetching;
    let arrived = () => {};
    this.#arriving = new Promise((resolve) => {
      arrived = resolve;
    });
    const fetching = this.#get(() => arrived()).finally(() => {
      if (this.#fetching === fetching) this.#fetching = undefined;
    });
    this.#fetching = fetching;
    return fetching;
  }

  /**
   * The same for a call that must not wait longer than its own time. Opening a connection, signing in included, has limits of its own, and a
   * person who is asked about tools (`onFirstUse`) is not hurried.
   * @param limitMs how long the server may take
   * @param what the call, for the error's words
   * @returns milliseconds that the server took
   * @throws ConnectionError `timeout`, as `get`
   */
  async renew(limitMs: number, what: string): Promise<number> {
    await this.#server.connection();
    if (this.#server.identifies) await this.#server.identify();
    const began = Date.now();
    const got = this.#join();
    const arrived = Promise.race([got, this.#arriving]).then(() => Date.now() - began);
    const spent = await bounded(arrived, limitMs);
    if (spent === undefined) {
      got.catch(() => {}); // whoever else waits for it is told
      throw new ConnectionError(
        `${what} was not sent to server "${this.#server.name}": it waited for the list of its tools, which did not come ` +
          `within ${Math.round(limitMs)} ms. Raise timeoutMs if the server needs longer`,
        { code: "timeout", server: this.#server.name, retryable: true, maybeExecuted: false, data: { ms: limitMs } },
      );
    }
    await got;
    return spent;
  }

  /** Whether the list is known, be it old. */
  get isKnown(): boolean {
    return this.#connection !== undefined;
  }

  /** Whether the list is the word of this place, and not of another replica: during an upgrade two of them differ. */
  isOf(place: EndpointConfig): boolean {
    const from = this.#connection?.config;
    return !from || !("url" in place && "url" in from) || place.url === from.url;
  }

  /** The same for whoever shows the list, and wants to hear from now on that it changed. */
  async watch(): Promise<readonly WireTool[]> {
    this.#watched = true;
    const tools = await this.get();
    // a request that was under way already may not have known
    this.#connection?.watchTools(() => this.expire());
    return tools;
  }

  /**
   * Makes sure that definitions are known before a call relies on them. A server that cannot list, or not in time, is
   * called all the same: it has the last word on its arguments.
   * @param limitMs how long the list may take
   * @returns milliseconds spent on the list
   * @throws TenonError when there is no connection
   */
  async prepare(limitMs: number): Promise<number> {
    if (this.#connection || Date.now() - this.#tried < AGAIN_MS) return 0;
    await this.#server.connection();
    const began = Date.now();
    this.#tried = began;
    try {
      await bounded(this.get(), Math.min(limitMs, PREPARE_MS));
    } catch (error) {
      // without a connection nothing can be called either; a refused list may only lack what an interceptor adds to calls
      if (error instanceof ConnectionError && error.maybeExecuted === false) throw error;
    }
    return Date.now() - began;
  }

  /**
   * Refuses a call of a tool that is not offered, or whose name stands for several.
   * @throws ConfigError `tool_not_allowed`, ProtocolError `ambiguous_tool`
   */
  async admit(name: string): Promise<void> {
    const server = this.#server.name;
    this.#filter ??= makeFilter(this.#server.config);
    const reason = (await this.#filter)?.refusal(this.find(name) ?? { wireName: name, annotations: {} });
    if (reason) {
      throw new ConfigError(
        `tool "${name}" of server "${server}" is not selected: in the server's configuration, ${reason}. Nothing was sent`,
        {
          code: "tool_not_allowed",
          server,
          maybeExecuted: false,
          data: { tool: name },
        },
      );
    }
    if (!this.#ambiguous.has(name)) return;
    const problem = this.#problems.find(({ tool }) => tool === name);
    throw new ProtocolError(
      `tool "${name}" of server "${server}" cannot be called: ${problem?.reason ?? "its name is not unique"}`,
      {
        code: "ambiguous_tool",
        server,
        maybeExecuted: false,
        data: { tool: name },
      },
    );
  }

  /** Notes what turned out about a tool when it was used; shown by `client.servers()`. */
  doubt(tool: string, reason: string): void {
    const key = `${tool}\n${reason}`;
    if (this.#doubts.has(key) || this.#doubts.size >= MAX_DOUBTS) return;
    this.#doubts.set(key, { tool, reason });
    this.#report();
  }

  /** Takes back what was noted about it. */
  settle(tool: string): void {
    const keys = [...this.#doubts].filter(([, doubt]) => doubt.tool === tool).map(([key]) => key);
    for (const key of keys) this.#doubts.delete(key);
    if (keys.length > 0) this.#report();
  }

  #report(): void {
    this.#server.report([...this.#problems, ...this.#doubts.values()]);
  }

  async #get(arrived: () => void): Promise<readonly WireTool[]> {
    try {
      return await this.#server.use("tools/list", (connection) => this.#fetch(connection, arrived), true);
    } catch (error) {
      // `use` throws nothing else
      if (this.#server.info.health === "up") this.#server.report([], error as TenonError | ProtocolError);
      throw error;
    }
  }

  async #fetch(connection: Connection, arrived: () => void): Promise<readonly WireTool[]> {
    if (connection === this.#connection && Date.now() < this.#freshUntil) return this.#offered;
    const generation = this.#generation;
    const before = this.#connection;
    // before the request: a change announced while it runs must not be lost
    this.#freshUntil = Number.POSITIVE_INFINITY;
    // the older revision announces without being asked; a call alone is no reason to ask
    if (this.#watched || connection.era === "legacy") connection.watchTools(() => this.expire());
    try {
      const capability = connection.sdk.getServerCapabilities()?.tools;
      const allowed = connection.contract?.declares("tools.list", "tools.execute") !== false;
      const { items, freshness } =
        capability && allowed
          ? await fetchAll(connection, "tools/list")
          : // a contract is renewed, and may then allow more
            { items: [], freshness: allowed ? { ttlMs: MAX_TTL_MS } : {} };
      arrived();
      if (generation !== this.#generation) throw new IdentityChanged(this.#server.name);
      this.#connection = connection;
      if (connection.era === "modern") this.#keepFor(freshness.ttlMs ?? 0);
      // the older revision has no such word: without announcements nothing else says that a list is old
      else if (!capability?.listChanged || !connection.hearsChanges) this.#keepFor(UNANNOUNCED_MS);
      const over = { http: connection.era === "modern" && "url" in connection.config, tasks: connection.hasTasks };
      this.#tasks = over.tasks;
      await this.#take(items, over, connection !== before);
      return this.#offered;
    } catch (error) {
      this.expire();
      throw error;
    }
  }

  #keepFor(ms: number): void {
    this.#freshUntil = Math.min(this.#freshUntil, Date.now() + ms);
  }

  async #take(items: readonly unknown[], over: ListedOver, anew: boolean): Promise<void> {
    this.#filter ??= makeFilter(this.#server.config);
    const filter = await this.#filter;
    const { tools, problems, ambiguous } = parseTools(this.#server.name, items, over);
    const known = this.#all;
    // a definition that did not change stays the same object: what was compiled for it stays too
    const all = tools.map((tool) => {
      const old = known.get(tool.wireName);
      return old && isDeepStrictEqual(old, tool) ? old : tool;
    });
    if (anew || all.some((tool) => known.get(tool.wireName) !== tool)) this.#doubts.clear();
    this.#all = new Map(all.map((tool) => [tool.wireName, tool]));
    const mirrored = over.http ? all.filter(({ inputSchema }) => declaresHeaders(inputSchema)) : [];
    this.#mirrored = new Map(
      // the SDK's type wants more of a schema than the list was checked for: it reads the header declarations only
      mirrored.map(({ wireName, inputSchema }) => [wireName, { name: wireName, inputSchema } as Tool]),
    );
    const selected = filter ? all.filter((tool) => filter.refusal(tool) === undefined) : all;
    const admitted = await this.#gate?.admit(this.#server.name, { tools: selected, problems });
    this.#offered = admitted?.tools ?? selected;
    this.#ambiguous = ambiguous;
    const idle = (filter?.idle(all) ?? []).map(({ pattern, reason }) => ({ tool: pattern, reason }));
    this.#problems = [...(admitted?.problems ?? problems), ...this.#offered.flatMap(schemaProblems), ...idle];
    this.#report();
  }
}
