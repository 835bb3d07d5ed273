import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { ConfigError, ConnectionError, cleanText, type TenonError } from "@tenon/core";
import { type ContentOf, contentOf, didYouMean, digest } from "@tenon/core/internal";
import { callOnWire } from "./call/call.ts";
import { nextClient, noteCall } from "./call/marks.ts";
import { runOnion, showTools } from "./call/onion.ts";
import { createRequest } from "./call/request.ts";
import {
  getPromptOf,
  inTurns,
  listPromptsOf,
  listResourcesOf,
  listResourceTemplatesOf,
  readResource,
} from "./call/resources.ts";
import { isToolResult, problemResult, resultError } from "./call/results.ts";
import { MAX_RESULT_BYTES, withRoom } from "./call/size.ts";
import { tracedCall } from "./call/trace.ts";
import type { WireContext } from "./call/wire.ts";
import { AnswerCache } from "./catalog/cache.ts";
import { ToolList } from "./catalog/catalog.ts";
import { mergeTools } from "./catalog/names.ts";
import { refuseNoObject } from "./catalog/tool-checks.ts";
import { cancelled, withSignal } from "./connection/deadline.ts";
import type { Endpoint } from "./connection/endpoint.ts";
import { Pools } from "./connection/pool.ts";
import { bounded } from "./connection/time.ts";
import { configuredContext } from "./contract/accepted.ts";
import { contextOf } from "./contract/session-context.ts";
import { createEmit } from "./events.ts";
import { connectionHooks } from "./hooks.ts";
import {
  checkCallOptions,
  checkClientOptions,
  checkName,
  checkPromptArguments,
  checkReadOptions,
  checkSessionId,
  checkUris,
} from "./options.ts";
import { createPeerAnswers, type PeerAnswers } from "./question/peer-requests.ts";
import { Visits } from "./question/url-refusals.ts";
import { endpointOf } from "./routing/endpoint-of.ts";
import { createClientTasks } from "./task/client-tasks.ts";
import { Gate, pinOptions } from "./trust/gate.ts";
import { grantedResources } from "./trust/grants.ts";
import type { CallOptions, ReadOptions, ToolCallOutcome, ToolCallRequest, ToolRuntime } from "./types/calls.ts";
import type {
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  PromptMessage,
  ResourceBlob,
} from "./types/catalog.ts";
import type { Client, ClientOptions } from "./types/client.ts";
import type { SessionContext } from "./types/contracts.ts";
import type { ClientEvents } from "./types/events.ts";
import type { ServerInfo } from "./types/servers.ts";
import type { ClientTasks } from "./types/tasks.ts";

const CLOSE_MS = 1_700;
const CLOSE_POOLS_MS = 200;
/** Servers that an error names. */
const MAX_NAMED = 20;
/** Interceptors may ask a person; where the call names no limit, this is theirs, in milliseconds. */
const INTERCEPTORS_MS = 600_000;

/** What the client keeps per server. */
interface Entry {
  readonly server: Endpoint;
  readonly tools: ToolList;
  readonly cache: AnswerCache;
}

function closedError(): ConnectionError {
  return new ConnectionError("the client was closed; create a new one", { code: "closed", maybeExecuted: false });
}

class TenonClient<Runtime extends ToolRuntime, Extra> implements Client<Runtime, Extra> {
  readonly elicitation: "callback" | "interrupt" | "none";
  readonly tasks: ClientTasks<Runtime, Extra>;
  readonly #options: ClientOptions<Runtime, Extra>;
  readonly #events: ClientEvents;
  readonly #emit: ReturnType<typeof createEmit>;
  readonly #peers: PeerAnswers;
  readonly #visits = new Visits();
  readonly #content: ContentOf | undefined;
  readonly #number = nextClient();
  readonly #entries = new Map<string, Entry>();
  readonly #pools = new Pools();
  readonly #abort = new AbortController();
  readonly #gate: Gate;
  /** Servers that a list lacked, and the program's user was told of. */
  readonly #leftOut = new Set<string>();
  #routes = new Map<string, CatalogTool>();
  /** Before the number of each call, so that its id is nobody else's: entries of many processes come together. */
  readonly #prefix = `call-${randomBytes(6).toString("base64url").replaceAll(/[-_]/g, "x")}`;
  #calls = 0;
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions<Runtime, Extra>) {
    this.#options = options;
    setMaxListeners(0, this.#abort.signal); // one listener a call in flight: no leak, however many
    this.#events = options.events ?? {};
    this.#content = contentOf(options.telemetry);
    this.#emit = createEmit(this.#events);
    this.#peers = createPeerAnswers(options);
    const { elicitation } = options;
    this.elicitation = elicitation === undefined ? "none" : elicitation === "interrupt" ? "interrupt" : "callback";
    const { servers, onFirstStart } = options;
    const pin = pinOptions(options.pin);
    this.#gate = new Gate({ servers, pin, onFirstStart, signal: this.#abort.signal });
    const hooks = connectionHooks(options, {
      emit: this.#emit,
      gate: this.#gate,
      peers: this.#peers,
      pools: this.#pools,
      visits: this.#visits,
    });
    for (const [name, config] of Object.entries(options.servers)) {
      const onState = (info: ServerInfo) => this.#emit(this.#events.onServerState, info);
      const server = endpointOf(name, withRoom(config, options.maxResultBytes), { hooks, onState, ...options });
      const tools = new ToolList(server, this.#gate);
      server.onIdentity = () => {
        tools.reset();
        this.#routes = new Map();
      };
      this.#entries.set(name, { server, tools, cache: new AnswerCache() });
    }
    this.tasks = createClientTasks<Runtime, Extra>({
      signal: this.#abort.signal,
      server: (name) => this.#entry(name).server,
      context: (name, given) => this.#context(this.#entry(name), given),
      call: (...call) => this.#call(...call),
    });
  }

  async listTools(...servers: string[]): Promise<readonly CatalogTool[]> {
    const found = await this.#fromAll(servers, ({ tools }) => tools.watch());
    // names are made over everything known, so that asking for one server gives the names of the whole catalog
    const known = [...this.#entries.values()].flatMap(({ tools }) => tools.known);
    const named = mergeTools(known, this.#options.naming ?? "prefixed", [...this.#entries.keys()]);
    const merged = showTools(named, this.#options.interceptors ?? []);
    this.#routes = new Map(merged.map((tool) => [tool.name, tool]));
    const reached = new Set(found.map(({ name }) => name));
    return Object.freeze(merged.filter((tool) => reached.has(tool.server)));
  }

  async listPrompts(...servers: string[]): Promise<readonly CatalogPrompt[]> {
    const found = await this.#fromAll(servers, (entry) => listPromptsOf(entry));
    return found.flatMap(({ value }) => value);
  }

  async listResources(...servers: string[]): Promise<readonly CatalogResource[]> {
    const found = await this.#fromAll(servers, (entry) => listResourcesOf(entry));
    const granted = ({ server, uri }: CatalogResource) => this.#granted(server, [uri], false).length > 0;
    return found.flatMap(({ value }) => value).filter(granted);
  }

  async listResourceTemplates(...servers: string[]): Promise<readonly CatalogResourceTemplate[]> {
    const found = await this.#fromAll(servers, (entry) => listResourceTemplatesOf(entry));
    return found.flatMap(({ value }) => value);
  }

  async callTool(
    server: string,
    tool: string,
    args: Record<string, unknown> = {},
    options: CallOptions<Runtime> = {},
  ): Promise<ToolCallOutcome<Extra>> {
    checkCallOptions(options);
    return this.#call(server, tool, args, options, {});
  }

  async #call(
    server: string,
    tool: string,
    args: Record<string, unknown>,
    options: CallOptions<Runtime>,
    { starts = false, task }: { readonly starts?: boolean; readonly task?: string },
  ): Promise<ToolCallOutcome<Extra>> {
    checkName("callTool", tool);
    const entry = this.#entry(server);
    const refused = refuseNoObject(server, tool, args);
    if (refused && this.#options.toolErrors === "throw") throw refused;
    if (refused) return problemResult(refused);
    const { driver } = options;
    const follow = { ...this.#options.task, ...options.task };
    const own = { tools: entry.tools, gate: this.#gate, driver, given: args, follow, starts };
    const context = { ...this.#context(entry, options), ...own };
    // a runtime has optional parts only; who narrows it passes one
    const runtime = Object.freeze({ ...options.runtime }) as Runtime;
    const asked = entry.server.identifies ? await this.#asked(entry.server, tool, options) : "";
    const { contextFields } = context;
    noteCall(runtime, this.#number, () => (contextFields ? digest([asked, contextFields]) : asked));
    const describe = {
      server: entry.server,
      known: () => entry.tools.find(tool) !== undefined,
      content: this.#content,
    };
    const outcome = await tracedCall(describe, { tool, args, meta: options.meta ?? {} }, (meta) =>
      runOnion<Runtime, Extra>({
        interceptors: this.#options.interceptors ?? [],
        core: (inner: ToolCallRequest<Runtime>) => callOnWire(context, inner),
        signals: options.signal ? [options.signal, this.#abort.signal] : [this.#abort.signal],
        limitMs: options.timeoutMs ?? options.totalTimeoutMs ?? INTERCEPTORS_MS,
        request: (signal) =>
          createRequest<Runtime>({
            server,
            name: tool,
            callId: context.callId,
            args,
            headers: options.headers ?? {},
            meta,
            ...(task !== undefined && { task }),
            runtime,
            signal,
            define: (name) => entry.tools.define(name),
          }),
      }),
    );
    if (this.#options.toolErrors === "throw" && isToolResult(outcome) && outcome.isError) {
      throw resultError(server, tool, outcome);
    }
    return outcome;
  }

  /** Who a call is made for: to be told by a function or a store of the program, which may never answer. */
  async #asked(server: Endpoint, tool: string, { signal, timeoutMs }: CallOptions<Runtime>): Promise<string> {
    const what = `tools/call ${tool}`;
    const ends = [this.#abort.signal, ...(signal ? [signal] : [])];
    let told: Promise<string | undefined> = server.identify();
    if (timeoutMs !== undefined) told = bounded(told, timeoutMs);
    for (const one of ends) told = withSignal(told, one, () => cancelled(server.name, what, one.reason, false));
    const principal = await told;
    if (principal !== undefined) return principal;
    throw new ConnectionError(
      `${what} was not sent to server "${server.name}": its auth did not say within ${timeoutMs} ms what to send it with. Look at ` +
        "the function or the store that it is given, or raise timeoutMs",
      { code: "timeout", server: server.name, retryable: true, maybeExecuted: false, data: { ms: timeoutMs } },
    );
  }

  async dispatch(
    name: string,
    args: Record<string, unknown> = {},
    options: CallOptions<Runtime> = {},
  ): Promise<ToolCallOutcome<Extra>> {
    if (!this.#routes.has(name)) await this.listTools();
    const route = this.#routes.get(name);
    if (route) return this.callTool(route.server, route.wireName, args, options);
    const near = didYouMean(name, [...this.#routes.keys()]);
    const down = this.servers().filter(({ health }) => health === "down");
    const missing = down.map(({ server }) => `"${server}"`).join(", ");
    const hint = near
      ? `did you mean "${near}"?`
      : missing
        ? `these servers are not reachable now: ${missing}`
        : "listTools() tells the names";
    throw new ConfigError(`there is no tool "${name}"; ${hint}`, {
      code: "unknown_tool",
      maybeExecuted: false,
      data: { name, near },
    });
  }

  async readResources(
    server: string,
    uris?: readonly string[],
    options: ReadOptions<Runtime> = {},
  ): Promise<readonly ResourceBlob[]> {
    checkReadOptions(options, "readResources");
    checkUris(uris);
    const entry = this.#entry(server);
    const listed = uris ?? (await listResourcesOf(entry)).map(({ uri }) => uri);
    const wanted = this.#granted(server, listed, uris !== undefined);
    const read = (uri: string) =>
      readResource(this.#context(entry, options), entry.cache, uri, options, this.#abort.signal);
    return (await inTurns(wanted, read)).flat();
  }

  async getPrompt(
    server: string,
    name: string,
    args: Record<string, string> = {},
    options: ReadOptions<Runtime> = {},
  ): Promise<readonly PromptMessage[]> {
    checkReadOptions(options, "getPrompt");
    checkName("getPrompt", name);
    checkPromptArguments(args);
    return getPromptOf(this.#context(this.#entry(server), options), name, args, options, this.#abort.signal);
  }

  async getContext(server: string, sessionId: string, options: ReadOptions<Runtime> = {}): Promise<SessionContext> {
    checkReadOptions(options, "getContext");
    checkSessionId(sessionId);
    return contextOf(this.#context(this.#entry(server), options), sessionId, options, this.#abort.signal);
  }

  servers(): readonly ServerInfo[] {
    return [...this.#entries.values()].map(({ server }) => server.info);
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#abort.abort(closedError());
      const all = [...this.#entries.values()].map(({ server }) => server.close());
      await bounded(Promise.allSettled(all), CLOSE_MS);
      await bounded(this.#pools.close(), CLOSE_POOLS_MS);
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #granted(server: string, uris: readonly string[], strict: boolean): readonly string[] {
    return grantedResources(server, this.#options.servers[server]?.grants, uris, strict);
  }

  /** What one request needs of this client. */
  #context({ server }: Entry, options: ReadOptions<Runtime> & { readonly callId?: string }): WireContext {
    return {
      server,
      route: { threadId: options.runtime?.threadId },
      emit: this.#emit,
      events: this.#events,
      elicitation: this.#options.elicitation,
      peers: this.#peers,
      visits: this.#visits,
      logLevel: this.#options.logLevel ?? "info",
      content: this.#content,
      maxResultBytes: options.maxResultBytes ?? this.#options.maxResultBytes ?? MAX_RESULT_BYTES,
      // an option that is undefined is one that is not given
      options: { ...options, timeoutMs: options.timeoutMs ?? server.config.timeoutMs },
      contextFields: configuredContext(server.name, server.config, options.runtime ?? {}),
      callId: options.callId ?? `${this.#prefix}-${++this.#calls}`,
    };
  }

  #entry(name: string): Entry {
    if (this.#abort.signal.aborted) throw closedError();
    const entry = this.#entries.get(name);
    if (entry) return entry;
    const known = [...this.#entries.keys()];
    const near = didYouMean(name, known);
    const configured = `configured servers: ${known.slice(0, MAX_NAMED).join(", ") || "none"}`;
    const hint = near ? `did you mean "${near}"? (${configured})` : configured;
    throw new ConfigError(`there is no server "${name}"; ${hint}`, {
      code: "unknown_server",
      maybeExecuted: false,
      data: { name, near },
    });
  }

  /** Asks the named servers, or all, at once; one that fails is left out unless it is `required`. */
  async #fromAll<T>(
    names: readonly string[],
    ask: (entry: Entry) => Promise<T>,
  ): Promise<{ name: string; value: T }[]> {
    const entries = (names.length > 0 ? names : [...this.#entries.keys()]).map((name) => this.#entry(name));
    if (this.#abort.signal.aborted) throw closedError();
    const outcomes = await Promise.allSettled(entries.map(ask));
    const found: { name: string; value: T }[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const server = entries[index]?.server;
      if (!server) continue;
      if (outcome.status === "fulfilled") {
        found.push({ name: server.name, value: outcome.value });
        this.#leftOut.delete(server.name);
      }
      // everything below throws Tenon's errors only
      // a damaged lock file is nobody's outage: it must not look like servers without tools
      else if (server.config.required || server.closed || outcome.reason?.code === "bad_lock")
        throw outcome.reason as TenonError;
      else this.#tellLeftOut(server.name, outcome.reason as TenonError);
    }
    return found;
  }

  /** A list that lacks a server must not look like a server without tools: said once, unless somebody listens. */
  #tellLeftOut(server: string, { message }: TenonError): void {
    if (this.#events.onServerState || this.#leftOut.has(server)) return;
    this.#leftOut.add(server);
    process.stderr.write(`tenon: left out of the list: ${cleanText(message)}\n`);
  }
}

/**
 * A client for many MCP servers at once. Nothing is connected until it is used.
 *
 * @example
 * await using client = createClient({ servers: { order: { url: "http://127.0.0.1:8030/mcp" } } });
 * const result = await client.callTool("order", "query_order", { order_id: "ORD-001" });
 * @throws ConfigError for an option that is unknown or wrong
 */
export function createClient<Runtime extends ToolRuntime = ToolRuntime, Extra = never>(
  options: ClientOptions<Runtime, Extra>,
): Client<Runtime, Extra> {
  checkClientOptions(options);
  return new TenonClient(options);
}
