import {
  type AuthInfo,
  classifyInboundRequest,
  createMcpHandler,
  type InboundClassificationOutcome,
  isInitializeRequest,
  isJsonContentType,
  localhostAllowedHostnames,
  type McpHttpHandler,
  ProtocolError,
  validateHostHeader,
  validateOriginHeader,
} from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { callerKey } from "../auth/caller.ts";
import { type AuthFront, createFront } from "../auth/front.ts";
import { type Admitted, createGate, type Verdict } from "../auth/gate.ts";
import { createScopeRefusals, viewerOf } from "../auth/scope-refusals.ts";
import type { TokenVerifier } from "../auth/types.ts";
import type { Compatibility } from "../contract/compatibility.ts";
import type { Contract } from "../contract/contract.ts";
import { type CompatibilityEndpoint, compatibilityEndpoint } from "../contract/endpoints.ts";
import { checkParamHeaders, paramHeadersOf } from "../definition/param-headers.ts";
import type { Scopes } from "../definition/scopes.ts";
import type { Service } from "../dispatch/dispatch.ts";
import type { Bus } from "../dispatch/notify.ts";
import { type Refusal, readMessage } from "../dispatch/params.ts";
import { createLastingProtocol, createProtocol, exists, type Introduction, identityOf } from "../dispatch/protocol.ts";
import { createShares, withoutHidden } from "../dispatch/subscriptions.ts";
import type { Caller } from "../handler/context.ts";
import { taskIdsOf } from "../task/feed.ts";
import { declaresTasks, missingTasks } from "../task/wire.ts";
import { MAX_BODY_BYTES, parseBody, REQUEST_TIMEOUT_MS, readText } from "./body.ts";
import { preflight, readableBy } from "./cors.ts";
import { endingWith } from "./ending.ts";
import { noteRemoteAddress } from "./remote-address.ts";
import { scopesOf } from "./scope-check.ts";
import { LegacySessions, notFound, SESSION_LIMITS, type SessionLimits, type SessionRequest } from "./sessions.ts";
import { createTaskStreams } from "./task-stream.ts";

/** Who may reach the endpoint over HTTP, and how much of it. */
export interface HttpOptions {
  /** Host names (without port) a request may be addressed to, against DNS rebinding. Default: the loopback names. */
  allowedHosts?: readonly string[];
  /**
   * Pages that may call from a browser, and get CORS headers: an origin (`"https://desk.example"`) is that one only, a host name
   * without port any origin of that host. Default: pages of `allowedHosts` are answered, but without CORS headers, so that a page
   * of another origin (another port is one) cannot read the answer.
   */
  allowedOrigins?: readonly string[];
  /**
   * Reverse proxies in front of `listen`, by the address they connect from: addresses, ranges (`"10.0.0.0/8"`), `"loopback"`,
   * `"linklocal"`, `"uniquelocal"`, and `"unix"` for whoever uses the unix socket. What they say about a request
   * (`X-Forwarded-For`, `-Host`, `-Proto`, `Forwarded` of RFC 7239) counts as its address, host and protocol; of anybody else
   * it is ignored. Default: nobody.
   */
  trustedProxies?: readonly string[];
  /** Bytes of one request body. Default 4 MiB. */
  maxBodyBytes?: number;
  /** Milliseconds a client may take to send one request. Default 30,000. */
  requestTimeoutMs?: number;
  /**
   * Sessions of the older revision. `false` keeps none: its clients are answered request by request, by any of several processes,
   * and a question to them is an error.
   */
  sessions?: Partial<SessionLimits> | false;
}

/** What the embedding program knows about a request before the protocol does. */
export interface FetchOptions {
  /**
   * Who calls, from a token the program verified. It wins over the server's own `auth`, which then does not look at the request's
   * token: give it only for requests that you have checked.
   */
  caller?: Caller;
  /** Address the request came from; handlers and middleware see it as `remoteAddress`. */
  remoteAddress?: string | undefined;
}

/** What is known of a request that came through `listen`. */
interface Arrival extends FetchOptions {
  /** What the fast path found out about its token. */
  verdict?: Verdict | undefined;
  /** Path of the endpoint. */
  endpoint?: string | undefined;
}

/** Who may come in, and what a scope includes. */
export interface Admission {
  readonly verifier: TokenVerifier | undefined;
  readonly scopes: Scopes;
}

/** The HTTP side of a server as one web-standard function, and what the fast path shares with it. */
export interface HttpSide {
  fetch(request: Request, options?: Arrival): Promise<Response>;
  /** The token check; undefined where everybody may come in. */
  readonly front: AuthFront | undefined;
  /** Whether a path besides that of the endpoint, `base`, is answered here. */
  serves(pathname: string, base: string): boolean;
  /** Whether the two headers name hosts this server answers to. */
  allows(host: string | undefined, origin: string | undefined): boolean;
  readonly maxBodyBytes: number;
  /** The legacy sessions: a request of one that needs no push may be answered beside it. */
  readonly sessions: Pick<LegacySessions, "has" | "touch" | "size">;
  /** Lets answers finish for up to `graceMs`, then cuts streams and sessions. */
  close(graceMs?: number): Promise<void>;
}

const REVISION = "2026-07-28";
const HEADER_MISMATCH = -32020;
/** Subscriptions that are open at once. */
const MAX_SUBSCRIPTIONS = 1_024;
/** Those of one caller: nobody may take them all. */
const MAX_LISTENING = MAX_SUBSCRIPTIONS / 4;

function rpcError(status: number, code: number, message: string, more: { headers?: Record<string, string> } = {}) {
  return Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status, ...more });
}

/** The caller inside the SDK's auth slot; the token itself is deliberately not in it. */
function authOf(caller: Caller | undefined): AuthInfo | undefined {
  if (!caller) return undefined;
  return { token: "", clientId: caller.clientId ?? "", scopes: [...caller.scopes], extra: { caller } };
}

/** On 2025-11-25 an answer is JSON or a stream as the call needs it, and a client says that it takes both. */
function acceptRefusal(accept: string | undefined): string | undefined {
  if (accept?.includes("application/json") && accept.includes("text/event-stream")) return undefined;
  const given = accept === undefined ? "there was no Accept header" : `it was ${JSON.stringify(accept.slice(0, 200))}`;
  return `Accept must name both application/json and text/event-stream; ${given}`;
}

/** A body with its parameters read; of a batch, one that is refused is left to the protocol layer with the rest. */
function readBody(body: unknown): { body: unknown; refused?: { refusal: Refusal; method: string } } {
  if (Array.isArray(body)) return { body: body.map((message: unknown) => readBody(message).body) };
  const read = readMessage(body);
  return "message" in read ? { body: read.message } : { body, refused: read };
}

/** The refusal when headers that repeat arguments are missing or differ; undefined when all is well. */
function checkCallHeaders(service: Service, outcome: InboundClassificationOutcome, headers: Headers) {
  if (outcome.kind !== "modern" || outcome.messageKind !== "request") return undefined;
  if (outcome.classification.revision !== REVISION || outcome.message.method !== "tools/call") return undefined;
  const params = isRecord(outcome.message.params) ? outcome.message.params : {};
  const tool = service.registry.tools.get(String(params.name));
  if (!tool) return undefined;
  const declared = paramHeadersOf(tool.listing.modern.inputSchema);
  const mismatch = checkParamHeaders(declared, params.arguments, (name) => headers.get(name));
  if (!mismatch) return undefined;
  const message = `Bad Request: the request headers and body disagree: ${mismatch.body}`;
  const error = { code: HEADER_MISMATCH, message, data: { mismatch } };
  return Response.json({ jsonrpc: "2.0", id: outcome.message.id, error }, { status: 400 });
}

/** The refusal of an `initialize` that asks for a version of the contract which is not there. */
function contractRefusal({ contract }: Service, message: unknown): Response | undefined {
  const { id = null, params } = isRecord(message) ? message : {};
  const meta = isRecord(params) ? params._meta : undefined;
  try {
    contract?.version(isRecord(meta) ? meta : undefined);
    return undefined;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code, message, data } = error;
    return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } });
  }
}

/**
 * Streamable HTTP for both eras: stateless requests of 2026-07-28, sessions of 2025-11-25, and stateless answers to legacy
 * requests without a session. Checks Host and Origin first, then the announced size, then the token, then reads the body and
 * hands over one parsed message.
 */
export function createHttpSide(
  service: Service,
  introduction: Introduction,
  bus: Bus,
  options: HttpOptions = {},
  { verifier, scopes }: Admission,
): HttpSide {
  const hosts = [...(options.allowedHosts ?? localhostAllowedHostnames())];
  const given = options.allowedOrigins ?? hosts;
  const origins = new Set(given.filter((one) => one.includes("://")).map((one) => new URL(one).origin));
  const originHosts = given.filter((one) => !one.includes("://"));
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES;
  const timeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const modern: McpHttpHandler = createMcpHandler(({ era }) => createProtocol(service, introduction, era), {
    maxRequestBodySize: maxBodyBytes,
    maxSubscriptions: MAX_SUBSCRIPTIONS,
    bus: bus.events,
    onerror: (error) => service.log("debug", "request refused", { error }),
  });
  const sessions = new LegacySessions(
    (listeners) => createLastingProtocol(service, introduction, "legacy", bus, listeners),
    { ...SESSION_LIMITS, ...(options.sessions || undefined) },
    service.log,
  );
  const answering = new Set<Promise<unknown>>();
  const shares = createShares(MAX_LISTENING);
  /** Streams of tasks that are being opened: many may ask at once. */
  let listensOpening = 0;
  const taskStreams = createTaskStreams();
  let compatibility: Promise<Compatibility> | undefined;
  let closed = false;
  const knownScopes = (): ReadonlySet<string> => {
    const { requiredScopes = [], scopesSupported = [] } = verifier ?? {};
    return new Set([...scopesOf(service), ...scopes.named, ...requiredScopes, ...scopesSupported]);
  };
  const front =
    verifier &&
    createFront(
      verifier,
      createGate(verifier, scopes, service.log, knownScopes),
      introduction.title ?? introduction.name,
    );

  const scopeRefusals = createScopeRefusals(service, verifier?.requiredScopes ?? [], knownScopes);

  /** A request as its session sees it. */
  function inSession(request: Request, caller: Caller | undefined, body?: unknown): SessionRequest {
    const { headers } = request;
    const { authenticated } = service;
    return {
      request,
      body,
      viewer: viewerOf({ caller, era: "legacy", headers, authenticated, body, params: {} }),
      authInfo: authOf(caller),
      narrower: (needed) => scopeRefusals.narrower(caller, needed, () => front?.metadataUrl(request)),
    };
  }

  /** The body of a request, or the refusal of one that is none. */
  async function parsedBody(request: Request): Promise<{ value: unknown } | { problem: string } | Response> {
    if (!isJsonContentType(request.headers.get("content-type"))) {
      return rpcError(415, -32000, "Content-Type must be application/json");
    }
    const encoding = request.headers.get("content-encoding") ?? "identity";
    if (encoding !== "identity") return rpcError(415, -32000, `Content-Encoding ${encoding} is not supported`);
    const read = await readText(request, { maxBytes: maxBodyBytes, timeoutMs });
    if ("stopped" in read) {
      if (read.stopped === "left") return new Response(null, { status: 499 }); // nobody reads it
      return read.stopped === "too large"
        ? rpcError(413, -32000, `The request body is larger than ${maxBodyBytes} bytes`)
        : rpcError(408, -32000, `The request body took longer than ${timeoutMs} ms`);
    }
    return parseBody(read.text);
  }

  async function post(request: Request, caller: Caller | undefined, admitted: Admitted | undefined): Promise<Response> {
    const parsed = await parsedBody(request);
    if (parsed instanceof Response) return parsed;
    if ("problem" in parsed) return rpcError(400, -32700, parsed.problem);
    const { body, refused } = readBody(parsed.value);
    const header = (name: string): string | undefined => request.headers.get(name) ?? undefined;
    const outcome = classifyInboundRequest({
      httpMethod: "POST",
      protocolVersionHeader: header("mcp-protocol-version"),
      mcpMethodHeader: header("mcp-method"),
      mcpNameHeader: header("mcp-name"),
      body,
    });
    const unacceptable = outcome.kind === "legacy" ? acceptRefusal(header("accept")) : undefined;
    if (unacceptable !== undefined) return rpcError(406, -32000, unacceptable);
    const authInfo = authOf(caller);
    const session = outcome.kind === "legacy" ? header("mcp-session-id") : undefined;
    // in a session of another caller nothing is there to be refused
    if (caller && outcome.kind !== "reject" && (session === undefined || sessions.has(session, caller))) {
      const metadataUrl = (): string | undefined => front?.metadataUrl(request);
      const lacking = scopeRefusals.of({ caller, era: outcome.kind, headers: request.headers, body, metadataUrl });
      if (lacking) return lacking;
    }
    // of a method that does not exist, the parameters do not matter
    const refusal =
      refused && outcome.kind !== "reject" && exists(service.registry, refused.method, outcome.kind)
        ? refused.refusal
        : undefined;
    if (outcome.kind === "legacy") {
      if (session !== undefined && refusal && sessions.has(session, caller)) {
        sessions.touch(session);
        return Response.json(refusal);
      }
      if (session !== undefined) return sessions.handle(session, inSession(request, caller, body));
      if (isInitializeRequest(body)) {
        // no session is opened for a contract that this server does not have
        const unsupported = contractRefusal(service, body);
        if (unsupported) return unsupported;
        if (options.sessions !== false) return sessions.open(inSession(request, caller, body));
      }
    }
    if (refusal) return Response.json(refusal);
    const mismatch = checkCallHeaders(service, outcome, request.headers);
    if (mismatch) return mismatch;
    const send = (parsedBody: unknown): Promise<Response> =>
      modern.fetch(request, { parsedBody, ...(authInfo && { authInfo }) });
    const listens = outcome.kind === "modern" && isRecord(body) && body.method === "subscriptions/listen";
    return listens ? listenTo(request, body, caller, admitted, send) : send(body);
  }

  /** Opens a stream of news: of what its caller may see, and as many as leave some for others. */
  async function listenTo(
    { headers }: Request,
    body: Record<string, unknown>,
    caller: Caller | undefined,
    admitted: Admitted | undefined,
    send: (body: unknown) => Promise<Response>,
  ): Promise<Response> {
    const giveBack = caller && shares(callerKey(caller)); // callers without a token cannot be told apart
    if (caller && !giveBack) {
      const message = `A caller may hold ${MAX_LISTENING} subscriptions open; end some first`;
      return Response.json({ jsonrpc: "2.0", id: body.id, error: { code: -32603, message } });
    }
    const params = isRecord(body.params) ? body.params : {};
    const { authenticated } = service;
    const viewer = viewerOf({ caller, era: "modern", headers, authenticated, body, params });
    const ids = service.tasks.offered() ? taskIdsOf(body) : undefined;
    let atEnd = giveBack;
    let opening = false;
    try {
      if (ids && !declaresTasks(viewer.client)) {
        const { code, message, data } = missingTasks("News of tasks");
        return Response.json({ jsonrpc: "2.0", id: body.id, error: { code, message, data } }, { status: 400 });
      }
      if (ids && taskStreams.alone + listensOpening >= MAX_SUBSCRIPTIONS) {
        const error = { code: -32603, message: "Subscription limit reached" };
        return Response.json({ jsonrpc: "2.0", id: body.id, error });
      }
      if (ids) {
        listensOpening += 1;
        opening = true;
      }
      const feed = ids && (await service.tasks.feed(ids, caller));
      const response = await send(withoutHidden(service, body, viewer));
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
      atEnd = undefined; // it is the stream's now
      // a request by now: the protocol layer answered it with a stream
      const stream = feed ? taskStreams.add(response, feed, body.id as string | number) : response;
      return whileValid(stream, admitted, giveBack);
    } finally {
      if (opening) listensOpening -= 1;
      atEnd?.();
    }
  }

  /**
   * A stream of news ends with its token; a call that began with a good one may finish.
   * @param atEnd called when the stream is over
   */
  function whileValid(response: Response, admitted: Admitted | undefined, atEnd?: (() => void) | undefined): Response {
    if (!admitted && !atEnd) return response;
    return endingWith(response, (ended) => {
      const unwatch = front && admitted ? front.watch(admitted, ended) : undefined;
      return () => {
        unwatch?.();
        atEnd?.();
      };
    });
  }

  /** Answers a request to one of the endpoints for older clients, which only a server with a contract has. */
  async function compatible(
    request: Request,
    endpoint: CompatibilityEndpoint,
    contract: Contract,
    caller: Caller | undefined,
  ): Promise<Response> {
    if (request.method !== "POST") return rpcError(405, -32000, "Use POST", { headers: { Allow: "POST" } });
    const parsed = await parsedBody(request);
    if (parsed instanceof Response) return parsed;
    if ("problem" in parsed) return rpcError(400, -32000, parsed.problem);
    compatibility ??= import("../contract/compatibility.ts").then(({ createCompatibility }) =>
      createCompatibility(service, contract, identityOf(introduction)),
    );
    const { headers } = request;
    const metadataUrl = (): string | undefined => front?.metadataUrl(request);
    const insufficient = (body: unknown): Response | undefined =>
      caller && scopeRefusals.of({ caller, era: "legacy", headers, body, metadataUrl });
    return (await compatibility).answer({ endpoint, request, caller, insufficient }, parsed.value);
  }

  async function answer(
    request: Request,
    caller: Caller | undefined,
    base: string | undefined,
    admitted?: Admitted,
  ): Promise<Response> {
    const { contract } = service;
    const endpoint = contract && compatibilityEndpoint(new URL(request.url).pathname, base);
    if (endpoint) return compatible(request, endpoint, contract, caller);
    if (request.method === "POST") return post(request, caller, admitted);
    const session = request.headers.get("mcp-session-id");
    if (session !== null && (request.method === "GET" || request.method === "DELETE")) {
      if (!sessions.has(session, caller)) return notFound();
      return whileValid(await sessions.handle(session, inSession(request, caller)), admitted);
    }
    return rpcError(405, -32000, "Use POST", { headers: { Allow: "POST" } });
  }

  /** Answers a request of somebody who may come in. */
  async function admit(request: Request, { caller, verdict, endpoint }: Arrival): Promise<Response> {
    if (caller) return answer(request, { ...caller, scopes: scopes.implied(caller.scopes) }, endpoint);
    if (!front) return answer(request, undefined, endpoint);
    if (Number(request.headers.get("content-length")) > maxBodyBytes) {
      return rpcError(413, -32000, `The request body is larger than ${maxBodyBytes} bytes`);
    }
    const authorization = request.headers.get("authorization") ?? undefined;
    const found = verdict ?? (await front.admit(authorization, request.url));
    return "status" in found ? front.refuse(found, request) : answer(request, found.caller, endpoint, found);
  }

  const hostRefusal = (host: string | undefined): string | undefined => {
    const result = validateHostHeader(host, hosts);
    return result.ok ? undefined : result.message;
  };
  const originRefusal = (origin: string | undefined): string | undefined => {
    if (origin !== undefined && origins.has(origin)) return undefined;
    const result = validateOriginHeader(origin, originHosts);
    return result.ok ? undefined : result.message;
  };

  return {
    maxBodyBytes,
    sessions,
    front,
    serves: (pathname, base) =>
      front?.isMetadata(pathname, base) === true ||
      (service.contract !== undefined && compatibilityEndpoint(pathname, base) !== undefined),
    allows: (host, origin) => (hostRefusal(host) ?? originRefusal(origin)) === undefined,
    async fetch(request, arrival = {}) {
      const { host: addressed, pathname } = new URL(request.url);
      const foreignHost = hostRefusal(request.headers.get("host") ?? addressed);
      if (foreignHost !== undefined) return rpcError(403, -32000, foreignHost);
      // open to every page: it says where tokens come from, and nothing else
      if (front?.isMetadata(pathname, arrival.endpoint)) return front.metadata(request, arrival.endpoint);
      const origin = request.headers.get("origin") ?? undefined;
      const foreignOrigin = originRefusal(origin);
      if (foreignOrigin !== undefined) return rpcError(403, -32000, foreignOrigin);
      if (closed) return rpcError(503, -32000, "The server is closing");
      if (arrival.remoteAddress !== undefined) noteRemoteAddress(request, arrival.remoteAddress);
      const page = options.allowedOrigins ? origin : undefined;
      if (page !== undefined && request.method === "OPTIONS") return preflight(request, page);
      const answered = admit(request, arrival);
      const working = page === undefined ? answered : answered.then((response) => readableBy(page, response));
      answering.add(working);
      try {
        return await working;
      } catch (error) {
        if (request.signal.aborted) return new Response(null, { status: 499 }); // nobody reads it
        service.log("error", "HTTP request failed", { error });
        return rpcError(500, -32603, "Internal error");
      } finally {
        answering.delete(working);
      }
    },
    async close(graceMs = 1_000) {
      closed = true;
      if (answering.size > 0) {
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise((resolve) => {
          timer = setTimeout(resolve, graceMs);
        });
        await Promise.race([Promise.allSettled(answering), late]);
        clearTimeout(timer);
      }
      taskStreams.close();
      await Promise.allSettled([modern.close(), sessions.close()]);
    },
  };
}
