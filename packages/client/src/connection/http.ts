import { setMaxListeners } from "node:events";
import { SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ConnectionError, messageOf, ProtocolError } from "@tenon/core";
import { IdentityChanged, refusalOf } from "../auth/refusal.ts";
import type { AuthSession, Credential } from "../auth/types.ts";
import type { HttpServerConfig } from "../types/servers.ts";
import { type AskOptions, ask, type Head } from "./answer.ts";
import { currentExchange, type Exchange } from "./exchange.ts";
import { refusalCode } from "./failure.ts";
import { shownAddress } from "./place.ts";
import type { Pools, Route } from "./pool.ts";
import { retryAfterMs, sleep } from "./time.ts";

/** Bytes that one message of a server may have unless configured otherwise. */
export const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const MAX_REDIRECTS = 3;
/** How often a request is sent again because its proof lacked a nonce (RFC 9449 section 9). */
const MAX_PROOFS = 2;
/** Longest wait that a server may ask for before a list is asked for again. */
const MAX_LIST_WAIT_MS = 10_000;
/** Characters of a message within which a request says its method. */
const HEAD_CHARS = 200;
/** Bounds of the wait before a stream that was cut is asked for again, whatever its server wants. */
const MIN_RECONNECT_MS = 100;
const MAX_RECONNECT_MS = 30_000;
/** They say what the message or the connection says: a single call must not contradict them. */
const OWN_HEADERS = /^(content-|host$|mcp-(protocol-version|method|name|session-id)$)/i;

/** Whose requests a connection carries. */
export interface Identity {
  readonly session: AuthSession;
  /** Nobody's is empty. */
  readonly principal: string;
}

/** What a transport over HTTP needs besides its configuration. */
export interface HttpContext {
  readonly server: string;
  readonly identity?: Identity | undefined;
  readonly pools: Pools;
  /** Number of open listening streams after every change. */
  readonly onListening: (open: number) => void;
  /** Whether a listening stream that ended is asked for again somewhere else; the SDK's own way does not wait longer each time. */
  readonly keptElsewhere?: () => boolean;
  /** A request for a listening stream went out; it was answered, with a stream or without, or it failed. */
  readonly onListen?: (how: "sent" | "answered") => void;
}

/** The error of a message that is larger than allowed. */
export function tooLarge(server: string, limit: number): ProtocolError {
  return new ProtocolError(
    `server "${server}": result too large (limit ${limit} bytes). The connection goes on; ask the server for less at a ` +
      "time, or raise maxResponseBytes of this server",
    { code: "too_large", server, maybeExecuted: true, data: { limit } },
  );
}

/** Where a redirect leads, or the error for one that is not followed. */
function redirectOf(from: URL, { status, headers }: Head, server: string, hops: number): URL | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(status) || typeof location !== "string") return undefined;
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const refuse = (why: string): never => {
    const shown = to ? shownAddress(to) : JSON.stringify(location.slice(0, 200));
    throw new ConnectionError(
      `server "${server}" at ${shownAddress(from)} redirects to ${shown}, which was not followed: ${why}. If that ` +
        "is the server you mean, configure its address",
      { code: "redirected", server, maybeExecuted: false, data: { status, from: shownAddress(from), to: shown } },
    );
  };
  if (!to) return refuse("it is no address");
  if (to.origin !== from.origin)
    return refuse("it is another origin, and credentials stay with the one they were given for");
  if (status === 303) return refuse("it asks for another method");
  if (hops >= MAX_REDIRECTS) return refuse(`more than ${MAX_REDIRECTS} redirects`);
  return to;
}

/** Milliseconds that the request at hand may wait for a busy server. */
function patience(exchange: Exchange | undefined): number {
  if (exchange?.call) return exchange.call.impatient ? 0 : exchange.call.deadline.left;
  return exchange?.rawMethod ? MAX_LIST_WAIT_MS : 0;
}

function busyError(server: string, place: string, head: Head, text: string): ConnectionError {
  const wait = retryAfterMs(head.headers["retry-after"]);
  const when = wait === undefined ? "" : `; it asks to wait ${Math.ceil(wait / 1_000)} s`;
  return new ConnectionError(
    `server "${server}" (${place}) is busy: HTTP ${head.status}${when}${text && `: ${text.slice(0, 200)}`}`,
    {
      code: "http_error",
      server,
      retryable: true,
      maybeExecuted: false,
      data: { status: head.status, ...(wait !== undefined && { retryAfterMs: wait }) },
    },
  );
}

/** The credential of whom a connection belongs to. @throws IdentityChanged, AuthError */
async function credentialOf(server: string, { session, principal }: Identity): Promise<Credential | undefined> {
  const credential = await session.credential();
  if ((credential?.principal ?? "") !== principal) throw new IdentityChanged(server);
  return credential;
}

function headersOf(init: RequestInit | undefined, exchange: Exchange | undefined): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "tenon" };
  if (init?.headers instanceof Headers) for (const [name, value] of init.headers) headers[name] = value;
  else for (const [name, value] of new Headers(init?.headers)) headers[name] = value;
  // the SDK keeps `Authorization` for itself; an interceptor that brings the user's own token needs exactly that one
  for (const [name, value] of Object.entries(exchange?.headers ?? {})) {
    if (!OWN_HEADERS.test(name)) headers[name.toLowerCase()] = value;
  }
  headers["accept-encoding"] = "identity";
  return headers;
}

/** `fetch` for the SDK over kept-alive connections of our own, with redirects, busy servers and sizes decided here. */
function httpFetch(config: HttpServerConfig, context: HttpContext): typeof fetch {
  const { server, pools, onListening } = context;
  const route: Route = pools.route(config);
  const limit = config.maxResponseBytes ?? MAX_RESPONSE_BYTES;
  let listening = 0;
  let last: AbortSignal | undefined;

  /** On the older revision the SDK gives all requests one signal: one listener each is no leak, however many there are. */
  const ofRequest = (init: RequestInit | undefined): AbortSignal | undefined => {
    const signal = init?.signal ?? undefined;
    if (signal && signal === last) setMaxListeners(0, signal);
    last = signal;
    return signal;
  };

  const send = async (url: URL, init: RequestInit | undefined, exchange: Exchange | undefined) => {
    const method = init?.method ?? "GET";
    const headers = headersOf(init, exchange);
    // a call that brought its own is not ours to authorise
    const identity = headers.authorization === undefined ? context.identity : undefined;
    const credential = identity && (await credentialOf(server, identity));
    if (credential) Object.assign(headers, await credential.headers(method, url));
    const body = typeof init?.body === "string" ? init.body : undefined; // the SDK sends texts only
    // an answer of ours to a question inside a call: the call holds a connection and waits for it, so it must not wait for one
    const answers = body !== undefined && !body.slice(0, HEAD_CHARS).includes('"method"');
    const quiet = method === "GET" || exchange?.listening === true || answers;
    const options: AskOptions = {
      dispatcher: quiet ? route.quiet : route.dispatcher,
      url,
      method,
      headers,
      body,
      signal: ofRequest(init),
      limit,
      tooLarge: () => tooLarge(server, limit),
      onSent: method === "GET" ? () => context.onListen?.("sent") : undefined,
      onStreamStart: () => {
        if (method === "GET") onListening(++listening);
      },
      onStreamEnd: (error) => {
        if (exchange && error instanceof ProtocolError) exchange.failure ??= error;
        if (method === "GET") onListening(--listening);
      },
    };
    let answered: Awaited<ReturnType<typeof ask>>;
    try {
      answered = await ask(options).finally(() => {
        if (method === "GET") context.onListen?.("answered");
      });
    } catch (error) {
      const refused = refusalCode(error) !== undefined || String(error).includes("Proxy response");
      throw route.proxy !== undefined && refused ? proxyError(server, route.proxy, error, false) : error;
    }
    const encoding = answered.head.headers["content-encoding"];
    if (encoding !== undefined && String(encoding).toLowerCase() !== "identity") {
      await answered.answer.body?.cancel().catch(() => {});
      const message = `server "${server}" sent its answer as ${JSON.stringify(encoding)}, which was not offered`;
      throw new ProtocolError(message, { code: "bad_answer", server, maybeExecuted: true });
    }
    const stream =
      answered.head.headers["content-type"]?.toString().toLowerCase().startsWith("text/event-stream") === true;
    // of a 202 the SDK reads nothing, whatever it says it is
    if (exchange && method === "POST") exchange.streaming = stream && answered.head.status !== 202;
    return { ...answered, ...(identity && { token: credential?.token ?? "" }) };
  };

  return async (input, init) => {
    const exchange = currentExchange();
    let url = new URL(input instanceof Request ? input.url : input);
    let waited = false;
    let proofs = 0;
    for (let hops = 0; ; ) {
      const { head, answer, token } = await send(url, init, exchange);
      if (token !== undefined && context.identity?.session.again?.(answer, url) && ++proofs <= MAX_PROOFS) continue;
      const next = redirectOf(url, head, server, hops);
      if (next) {
        url = next;
        hops++;
        continue;
      }
      if (head.status === 429 || head.status === 503) {
        const wait = retryAfterMs(head.headers["retry-after"]);
        const text = await answer.text().catch(() => "");
        const patient = !waited && wait !== undefined && wait < patience(exchange);
        if (!patient || exchange?.call?.mayRepeat() === false) throw busyError(server, shownAddress(url), head, text);
        waited = true;
        await sleep(wait, init?.signal ?? undefined);
        continue;
      }
      // inside a tunnel it is the server's own
      if (route.proxy !== undefined && head.status === 502 && url.protocol === "http:") {
        throw proxyError(server, route.proxy, new Error("HTTP 502"), true);
      }
      // whoever waits for this request asks for a better token, outside of the request's own time
      const refusal = token === undefined ? undefined : refusalOf(server, answer, token || undefined);
      if (refusal && exchange) exchange.failure ??= refusal;
      return answer;
    }
  };
}

function proxyError(server: string, proxy: string, cause: unknown, maybeExecuted: boolean): ConnectionError {
  const reason = messageOf(cause);
  return new ConnectionError(
    `server "${server}" cannot be reached through the proxy ${proxy}: ${reason}. Check HTTPS_PROXY, HTTP_PROXY and ` +
      "NO_PROXY of this process",
    { code: "unreachable", server, retryable: true, maybeExecuted, cause },
  );
}

/** The transport to a server over HTTP; its headers go with every request, and to its own origin only. */
export function httpTransport(config: HttpServerConfig, context: HttpContext): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(config.url), {
    fetch: httpFetch(config, context),
    redirectPolicy: "follow", // that is: ours to decide, above
    // a stream that ended without an answer must be known as lost within a second
    reconnectionOptions: {
      initialReconnectionDelay: 250,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: 2,
    },
    // the delay may be the server's own word
    reconnectionScheduler: (reconnect, delay) => {
      const exchange = currentExchange();
      const listens = exchange?.call === undefined && exchange?.rawMethod === undefined;
      if (listens && context.keptElsewhere?.() === true) return undefined;
      const timer = setTimeout(reconnect, Math.min(Math.max(delay, MIN_RECONNECT_MS), MAX_RECONNECT_MS));
      if (listens) timer.unref();
      return () => clearTimeout(timer);
    },
    ...(config.headers && { requestInit: { headers: { ...config.headers } } }),
  });
}

/** The transport of the first revision, HTTP+SSE, for servers that know no other. */
export function sseTransport(config: HttpServerConfig, context: HttpContext): SSEClientTransport {
  return new SSEClientTransport(new URL(config.url), {
    fetch: httpFetch(config, context),
    redirectPolicy: "follow", // that is: ours to decide, above
    ...(config.headers && { requestInit: { headers: { ...config.headers } } }),
  });
}
