import {
  type ClientCapabilities,
  type ElicitRequest,
  type ElicitResult,
  type LoggingLevel,
  type LoggingMessageNotificationParams,
  Client as SdkClient,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import type { Era } from "@tenon/core";
import { ConnectionError } from "@tenon/core";
import type { ServerConfig, TransportServerConfig } from "../types.ts";
import { ChildTransport } from "./child.ts";
import { withSignal } from "./deadline.ts";
import { type ActiveCall, currentExchange, type Exchange, withExchange } from "./exchange.ts";
import { classify, refusalCode, unreachable } from "./failure.ts";
import { httpTransport } from "./http.ts";
import { bounded } from "./time.ts";
import { ChildTapTransport, TapTransport } from "./transport.ts";

/** Longer than any deadline of ours: the SDK must not end a request before we do. */
const NEVER_MS = 2 ** 31 - 1;

/** What every connection of a client needs from it. */
export interface ConnectionHooks {
  readonly info: { name: string; version: string };
  /** Declared when true. */
  readonly elicitation: boolean;
  /** Runs before every attempt to open a connection, and may forbid it. */
  beforeOpen?(server: string, config: ServerConfig): Promise<void>;
  onLog(server: string, message: LoggingMessageNotificationParams, call: ActiveCall | undefined): void;
  /** A question a legacy server asks inside a call; `call` is absent when several are in flight. */
  onQuestion(
    server: string,
    params: ElicitRequest["params"],
    calls: readonly ActiveCall[],
    signal: AbortSignal,
  ): Promise<ElicitResult>;
}

/** How a server is called in messages. */
export function placeOf(config: ServerConfig): string {
  if ("url" in config) return config.url;
  if ("command" in config) return [config.command, ...(config.args ?? [])].join(" ");
  return "its own transport";
}

/** One live connection to one server. Replaced, never repaired. */
export class Connection {
  readonly server: string;
  readonly config: ServerConfig;
  readonly sdk: SdkClient;
  readonly calls = new Set<ActiveCall>();
  /** Called once when the connection is gone, whoever closed it. */
  onGone: (() => void) | undefined;
  /** Called when the server says that its tools changed. */
  onToolsChanged: (() => void) | undefined;
  readonly #transport: TapTransport;
  readonly #child: ChildTransport | undefined;
  readonly #http: StreamableHTTPClientTransport | undefined;
  #requests = 0;
  #gone = false;
  #retired = false;
  #levelAsked = false;

  constructor(server: string, config: ServerConfig, hooks: ConnectionHooks) {
    this.server = server;
    this.config = config;
    if ("command" in config) {
      this.#child = new ChildTransport(config);
      this.#transport = new ChildTapTransport(this.#child);
    } else {
      this.#http = "url" in config ? httpTransport(config) : undefined;
      this.#transport = new TapTransport(this.#http ?? (config as TransportServerConfig).transport()); // the third kind
    }
    const capabilities: ClientCapabilities = hooks.elicitation ? { elicitation: { form: {}, url: {} } } : {};
    const budget = config.connectTimeoutMs ?? 5_000;
    this.sdk = new SdkClient(hooks.info, {
      capabilities,
      // a silent stdio server is taken for an old one; the rest of the budget is for its handshake
      versionNegotiation: { mode: "auto", probe: { timeoutMs: Math.ceil(budget * 0.6) } },
      inputRequired: { autoFulfill: false },
    });
    this.sdk.onclose = () => {
      if (this.#gone) return;
      this.#gone = true;
      this.onGone?.();
    };
    // errors that matter also reject the request they belong to
    this.sdk.onerror = () => {};
    this.sdk.setNotificationHandler("notifications/message", (message) =>
      hooks.onLog(server, message.params, this.#callOfEvent()),
    );
    this.sdk.setNotificationHandler("notifications/tools/list_changed", () => this.onToolsChanged?.());
    if (hooks.elicitation) {
      this.sdk.setRequestHandler("elicitation/create", (request, ctx) => {
        const call = currentExchange()?.call;
        return hooks.onQuestion(server, request.params, call ? [call] : [...this.calls], ctx.mcpReq.signal);
      });
    }
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

  get hasSession(): boolean {
    return this.era === "legacy" && this.#transport.sessionId !== undefined;
  }

  /** The last lines a child process wrote to its standard error. */
  get lastWords(): string {
    return this.#child?.lastWords ?? "";
  }

  /** Opens the connection; `legacy` skips the question for the newer revision. */
  async open(legacy: boolean, timeoutMs: number): Promise<void> {
    const prior = legacy ? ({ prior: { kind: "legacy" } } as const) : {};
    await withExchange({}, () => this.sdk.connect(this.#transport, { timeout: timeoutMs, ...prior }));
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
    } finally {
      this.#requests--;
      if (exchange.call) this.calls.delete(exchange.call);
      if (this.#retired && this.#requests === 0) void this.close();
    }
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
    if (this.#http && this.hasSession)
      await bounded(
        this.#http.terminateSession().catch(() => {}),
        400,
      );
    await this.sdk.close().catch(() => {});
    // a connection that never opened is not known to the SDK
    await this.#transport.close().catch(() => {});
  }

  #callOfEvent(): ActiveCall | undefined {
    const call = currentExchange()?.call;
    if (call) return call;
    const [only, ...others] = this.calls;
    return others.length === 0 ? only : undefined;
  }
}

/** Whether the other revision is worth a try; never when the server is down or refused the credential. */
function mayBeOtherEra(error: unknown, legacyFirst: boolean): boolean {
  if (refusalCode(error)) return false;
  if (SdkHttpError.isInstance(error)) return error.status !== 401 && error.status !== 403;
  if (legacyFirst) return true;
  if (!SdkError.isInstance(error)) return false;
  return error.code === SdkErrorCode.EraNegotiationFailed || error.code === SdkErrorCode.RequestTimeout;
}

/** How a connection is opened. */
export interface OpenOptions {
  /** Ask for the older revision first. */
  readonly legacyFirst: boolean;
  /** Gives up when aborted. */
  readonly signal: AbortSignal;
  /** Told about every failed attempt that is still being cleaned up. */
  readonly onClosing: (closing: Promise<void>) => void;
}

/**
 * Opens a connection within the server's connect budget: the newer revision first, then, unless the server is down or
 * refuses the credential, the older one on a fresh transport (some old servers exit or stay silent when asked).
 * @throws ConnectionError `unreachable`, AuthError
 */
export async function openConnection(
  server: string,
  config: ServerConfig,
  hooks: ConnectionHooks,
  options: OpenOptions,
): Promise<Connection> {
  const { legacyFirst, signal, onClosing } = options;
  const budget = config.connectTimeoutMs ?? 5_000;
  const place = placeOf(config);
  const until = Date.now() + budget;
  let connection: Connection | undefined;
  const attempt = async (legacy: boolean): Promise<Connection> => {
    const left = Math.max(1, until - Date.now());
    let timer: NodeJS.Timeout | undefined;
    const current = new Connection(server, config, hooks);
    connection = current;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(unreachable({ server, place }, `it did not answer within ${budget} ms`)), left);
    });
    try {
      const opened = Promise.race([current.open(legacy, left), late]);
      await withSignal(opened, signal, () => unreachable({ server, place }, "the client was closed"));
      return current;
    } catch (error) {
      onClosing(current.close());
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    return await attempt(legacyFirst);
  } catch (first) {
    let last = first;
    if (mayBeOtherEra(first, legacyFirst) && Date.now() < until && !signal.aborted) {
      try {
        return await attempt(!legacyFirst);
      } catch (second) {
        last = second;
      }
    }
    const { error } = classify(last, { server, place, what: "the handshake", session: false });
    if (!(error instanceof ConnectionError) || error.code === "unreachable" || error.code === "http_error") throw error;
    const words = connection?.lastWords;
    throw unreachable({ server, place }, words ? `${error.message}; its last words: ${words}` : error.message, last);
  }
}
