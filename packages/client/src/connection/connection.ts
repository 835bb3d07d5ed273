import {
  type ClientCapabilities,
  type ElicitRequest,
  type ElicitResult,
  type LoggingLevel,
  type NotificationMethod,
  type NotificationTypeMap,
  Client as SdkClient,
  type StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import type { Era } from "@tenon/core";
import { Refusal } from "../auth/refusal.ts";
import type { AcceptedContract } from "../contract/accepted.ts";
import type { Asked } from "../contract/asked.ts";
import type { PeerAnswers } from "../question/peer-requests.ts";
import { TASKS } from "../task/task.ts";
import type { ContractEvent } from "../types/contracts.ts";
import type { EndpointConfig, HttpServerConfig } from "../types/servers.ts";
import { ChildTransport } from "./child.ts";
import { type ActiveCall, currentExchange, type Exchange, withExchange } from "./exchange.ts";
import { httpTransport, type Identity, sseTransport } from "./http.ts";
import { keepListening, keepStream } from "./listening.ts";
import { placeOf } from "./place.ts";
import type { Pools } from "./pool.ts";
import { bounded } from "./time.ts";
import { ChildTapTransport, TapTransport } from "./transport.ts";
import type { Verdict } from "./verdicts.ts";

/** Longer than any deadline of ours: the SDK must not end a request before we do. */
const NEVER_MS = 2 ** 31 - 1;

/** How long calls wait for a stream to be asked for, and then for its head: some servers send none before they say something. */
const STREAM_WAIT_MS = { sent: 5_000, answered: 1_000 };

/** Told of a notification of one kind, with the call it belongs to where that is known. */
export type Notifications = {
  readonly [M in NotificationMethod]?:
    | ((server: string, params: NotificationTypeMap[M]["params"], call: ActiveCall | undefined) => void)
    | undefined;
};

/** What every connection of a client needs from it. */
export interface ConnectionHooks {
  readonly info: { name: string; version: string };
  /** Declared when true. */
  readonly elicitation: boolean;
  /** Runs before every attempt to open a connection, and may forbid it. */
  beforeOpen?(server: string, config: EndpointConfig): Promise<void>;
  readonly pools: Pools;
  /** A line that a child process wrote to its standard error. Left out: it goes to the one of this process. */
  readonly onStderr?: ((server: string, line: string) => void) | undefined;
  /** What a server's notifications lead to, by their method: only these are listened for. */
  readonly notifications: Notifications;
  /** How the contract of a server was, or was not, agreed on. */
  readonly onContract?: ((event: ContractEvent) => void) | undefined;
  /** Further kinds of requests this client answers. */
  readonly peers: PeerAnswers;
  /** A question a legacy server asks inside a call; `call` is absent when several are in flight. */
  onQuestion(
    server: string,
    params: ElicitRequest["params"],
    calls: readonly ActiveCall[],
    signal: AbortSignal,
  ): Promise<ElicitResult>;
}

/** Follows the first request for a stream; `done` resolves when it is answered, or was sent a while ago. */
function listenSteps(): { step(how: "sent" | "answered"): void; done: Promise<void> } {
  let resolve = () => {};
  const done = new Promise<void>((settle) => {
    resolve = settle;
  });
  const step = (how: "sent" | "answered") => {
    if (how === "answered") resolve();
    else setTimeout(resolve, STREAM_WAIT_MS.answered).unref();
  };
  return { step, done };
}

/** How a connection is made. */
export interface ConnectionWay {
  /** Over HTTP: speak the first transport, HTTP+SSE. */
  readonly sse?: boolean;
  readonly identity?: Identity | undefined;
  /** What the request that opens it asks for. */
  readonly asked?: Asked | undefined;
}

/** One live connection to one server. Replaced, never repaired. */
export class Connection {
  readonly server: string;
  readonly config: EndpointConfig;
  readonly sdk: SdkClient;
  readonly calls = new Set<ActiveCall>();
  /** Called once when the connection is gone, whoever closed it. */
  onGone: (() => void) | undefined;
  /** False while nothing has shown yet that the server is what was known about it. */
  proven = true;
  /** The contract that is in force; undefined where the server is used without one. */
  contract: AcceptedContract | undefined;
  #onToolsChanged: (() => void) | undefined;
  readonly #transport: TapTransport;
  readonly #child: ChildTransport | undefined;
  #http: StreamableHTTPClientTransport | undefined;
  /** Keeps the older revision's stream over HTTP. */
  #stream: ReturnType<typeof keepStream> | undefined;
  #streams = 0;
  /** Until the server answered the request for that stream. */
  #streamWait: Promise<unknown> | undefined;
  #stopListening: (() => void) | undefined;
  #requests = 0;
  #gone = false;
  #retired = false;
  #levelAsked = false;

  /** Whose requests it carries; empty where nobody is known. */
  readonly principal: string;

  constructor(server: string, config: EndpointConfig, hooks: ConnectionHooks, way: ConnectionWay = {}) {
    const { sse = false, identity, asked } = way;
    this.server = server;
    this.config = config;
    this.principal = identity?.principal ?? "";
    if ("command" in config) {
      const { onStderr } = hooks;
      this.#child = new ChildTransport(server, config, {
        onStderr: onStderr && ((line) => onStderr(server, line)),
        onTooLarge: (id, error) => this.#transport.fail(id, error),
      });
      this.#transport = new ChildTapTransport(this.#child, asked);
    } else if ("url" in config) {
      this.#transport = new TapTransport(this.#overHttp(config, hooks.pools, sse, identity), asked);
    } else {
      this.#transport = new TapTransport(config.transport(), asked);
    }
    const capabilities: ClientCapabilities = {
      ...(hooks.elicitation && { elicitation: { form: {}, url: {} } }),
      ...hooks.peers.capabilities,
      extensions: { [TASKS]: {} },
    };
    const budget = config.connectTimeoutMs ?? 5_000;
    this.sdk = new SdkClient(hooks.info, {
      capabilities,
      // a silent stdio server is taken for an old one; the rest of the budget is for its handshake, which is short once the
      // process has started
      versionNegotiation: { mode: "auto", probe: { timeoutMs: asked?.limitMs ?? Math.ceil(budget * 0.75) } },
      inputRequired: { autoFulfill: false },
    });
    this.sdk.onclose = () => {
      if (this.#gone) return;
      this.#gone = true;
      this.onGone?.();
    };
    // errors that matter also reject the request they belong to
    this.sdk.onerror = () => {};
    for (const [method, tell] of Object.entries(hooks.notifications)) {
      this.sdk.setNotificationHandler(method as NotificationMethod, ({ params }) => {
        if (method === "notifications/tools/list_changed") this.#onToolsChanged?.();
        tell?.(server, params as never, this.#callOfEvent()); // the params of this method: the table says so
      });
    }
    if (hooks.elicitation) {
      this.sdk.setRequestHandler("elicitation/create", (request, ctx) => {
        const call = currentExchange()?.call;
        return hooks.onQuestion(server, request.params, call ? [call] : [...this.calls], ctx.mcpReq.signal);
      });
    }
    hooks.peers.register(server, this.sdk, () => {
      const call = currentExchange()?.call;
      return call ? [call] : [...this.calls];
    });
  }

  get place(): string {
    return placeOf(this.config);
  }

  get gone(): boolean {
    return this.#gone;
  }

  get era(): Era {
    return this.sdk.getProtocolEra() ?? "legacy";
  }

  /** Whether the server may make tasks of calls, and tells of them by their id (tasks extension). */
  get hasTasks(): boolean {
    return this.era === "modern" && this.sdk.getServerCapabilities()?.extensions?.[TASKS] !== undefined;
  }

  get hasSession(): boolean {
    return this.sessionId !== undefined;
  }

  /** The id of its session, where it has one. */
  get sessionId(): string | undefined {
    return this.era === "legacy" ? this.#transport.sessionId : undefined;
  }

  /** Whether changes of the tools are heard of: over HTTP, the older revision needs a stream that many servers refuse. */
  get hearsChanges(): boolean {
    return this.era === "modern" || this.#http === undefined || this.#streams > 0;
  }

  /** The last lines a child process wrote to its standard error. */
  get lastWords(): string {
    return this.#child?.lastWords ?? "";
  }

  /** How a child process ended, in words. */
  get ending(): string | undefined {
    return this.#child?.ending;
  }

  /** Opens the connection; `known` skips the question which revision the server speaks. */
  async open(known: Exclude<Verdict, { kind: "sse" }> | undefined, timeoutMs: number): Promise<void> {
    const prior = known ? { prior: known } : {};
    const exchange: Exchange = {};
    try {
      await withExchange(exchange, () => this.sdk.connect(this.#transport, { timeout: timeoutMs, ...prior }));
    } catch (error) {
      throw exchange.failure instanceof Refusal ? exchange.failure : error;
    }
  }

  /**
   * Has `onChanged` called when the server says that its tools changed, and asks it to say so where the revision wants to
   * be asked. Failing at that is nobody's error.
   */
  watchTools(onChanged: () => void): void {
    this.#onToolsChanged = onChanged;
    if (this.#stopListening || this.#gone || this.era !== "modern") return;
    if (!this.sdk.getServerCapabilities()?.tools?.listChanged) return;
    this.#stopListening = keepListening(this.sdk, onChanged);
  }

  /**
   * Runs one request of the SDK as an exchange of its own. A connection that was retired meanwhile closes after its last
   * request.
   */
  async exchange<T>(exchange: Exchange, send: (options: { timeout: number }) => Promise<T>): Promise<T> {
    this.#requests++;
    if (exchange.call) this.calls.add(exchange.call);
    try {
      return await withExchange(exchange, () => send({ timeout: NEVER_MS }));
    } catch (error) {
      throw exchange.failure ?? error;
    } finally {
      this.#requests--;
      if (exchange.call) this.calls.delete(exchange.call);
      if (this.#retired && this.#requests === 0) void this.close();
    }
  }

  /**
   * What a call on a session of the older revision waits for: the stream for what the server says beside its answers. It is
   * asked for when the session begins, on a socket of its own; a question sent before it is there would be lost.
   */
  get streamPending(): Promise<unknown> | undefined {
    const waiting = this.hasSession ? this.#streamWait : undefined;
    if (!waiting) return undefined;
    return bounded(waiting, STREAM_WAIT_MS.sent).then(() => {
      this.#streamWait = undefined; // once is enough, also for a server that does not answer
    });
  }

  /** Asks a legacy server for log messages, once. A server that refuses is left alone: logs are no reason to fail. */
  async askForLogs(level: LoggingLevel): Promise<void> {
    if (this.#levelAsked || this.era !== "legacy" || !this.sdk.getServerCapabilities()?.logging) return;
    this.#levelAsked = true;
    // bounded, and shorter than the call that waits for it
    await withExchange({}, () => this.sdk.setLoggingLevel(level, { timeout: 2_000 })).catch(() => {});
  }

  /** Not used for new requests; those in flight may still end well. */
  async retire(): Promise<void> {
    this.#retired = true;
    if (this.#requests === 0) await this.close();
  }

  /** Ends the session where there is one, then the transport; a child process is gone within 1.5 s. */
  close(): Promise<void> {
    // as an exchange of its own: whoever closes may be inside a call with headers of its own
    return withExchange({}, () => this.#close());
  }

  async #close(): Promise<void> {
    this.#stopListening?.();
    this.#stream?.stop();
    if (this.#http && this.hasSession)
      await bounded(
        this.#http.terminateSession().catch(() => {}),
        400,
      );
    await this.sdk.close().catch(() => {});
    // a connection that never opened is not known to the SDK
    await this.#transport.close().catch(() => {});
  }

  #overHttp(config: HttpServerConfig, pools: Pools, sse: boolean, identity: Identity | undefined): Transport {
    const { server } = this;
    if (sse) {
      // the one stream carries every answer: without it the connection is of no use
      const onListening = (open: number) => {
        if (open === 0 && !this.#gone) void this.close();
      };
      return sseTransport(config, { server, pools, identity, onListening });
    }
    const listens = listenSteps();
    this.#streamWait = listens.done;
    const onListening = (open: number) => {
      this.#streams = open;
      this.#stream?.changed(open);
    };
    const keptElsewhere = () => this.#stream?.alone === true;
    const context = { server, pools, identity, onListening, onListen: listens.step, keptElsewhere };
    const http = httpTransport(config, context);
    this.#http = http;
    this.#stream = keepStream(
      () => withExchange({}, () => http.resumeStream("")),
      () => this.#onToolsChanged?.(),
    );
    return http;
  }

  #callOfEvent(): ActiveCall | undefined {
    const call = currentExchange()?.call;
    if (call) return call;
    const [only, ...others] = this.calls;
    return others.length === 0 ? only : undefined;
  }
}
