import { randomUUID } from "node:crypto";
import {
  type AuthInfo,
  type RequestId,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { callerKey } from "../auth/caller.ts";
import type { Viewer } from "../definition/access.ts";
import type { Caller } from "../handler/context.ts";
import type { ServerLog } from "../log.ts";
import { endingWith } from "./ending.ts";
import { SessionEvents } from "./event-store.ts";
import { createSessionCalls, hasAll, type SessionCalls } from "./session-calls.ts";

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly calls: SessionCalls;
  /** Whoever has a stream of news open. */
  readonly listeners: Set<Viewer>;
  /** Who opened it: an id that leaked opens nothing for another caller. */
  readonly owner: string;
  lastUsed: number;
  inFlight: number;
}

/** Limits of legacy sessions, which a client may open and forget. */
export interface SessionLimits {
  /** Sessions at once; one more closes the one idle longest of whoever has most of them. Default 1,000. */
  max: number;
  /** Milliseconds without a request until a session is closed. Default 30 minutes. */
  idleTimeoutMs: number;
}

export const SESSION_LIMITS: SessionLimits = { max: 1_000, idleTimeoutMs: 30 * 60_000 };

/** A request of a session. */
export interface SessionRequest {
  readonly request: Request;
  /** Undefined for what has none. */
  readonly body?: unknown;
  readonly viewer: Viewer;
  /** For the SDK's auth slot. */
  readonly authInfo: AuthInfo | undefined;
  /** Words the refusal of a token with fewer scopes than what it asks for was made with. */
  readonly narrower: (needed: readonly string[]) => Response;
}

/** Sessions of the 2025-11-25 revision: one protocol instance each, so that a question can be pushed into a running call. */
export class LegacySessions {
  readonly #sessions = new Map<string, Session>();
  readonly #connect: (listeners: () => Iterable<Viewer>) => Server;
  readonly #limits: SessionLimits;
  readonly #log: ServerLog;
  readonly #reaper: NodeJS.Timeout;

  /** @param connect makes the protocol instance of a session; what it tells of changes, all `listeners` must be allowed to see */
  constructor(connect: (listeners: () => Iterable<Viewer>) => Server, limits: SessionLimits, log: ServerLog) {
    this.#connect = connect;
    this.#limits = limits;
    this.#log = log;
    this.#reaper = setInterval(() => this.#reap(), Math.min(60_000, limits.idleTimeoutMs));
    this.#reaper.unref();
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Whether `caller` may use the session `id`. */
  has(id: string, caller: Caller | undefined): boolean {
    return this.#sessions.get(id)?.owner === callerKey(caller);
  }

  /** Notes that a session is in use although a request of it was answered elsewhere. */
  touch(id: string): void {
    const session = this.#sessions.get(id);
    if (session) session.lastUsed = Date.now();
  }

  /** Answers a request of a known session. It counts as used until the answer's stream has ended. */
  async handle(id: string, { request, body, viewer, authInfo, narrower }: SessionRequest): Promise<Response> {
    const session = this.#sessions.get(id);
    if (!session || session.owner !== callerKey(viewer.caller)) return notFound();
    const { calls, listeners } = session;
    const refusal = calls.receive(body, viewer.caller);
    if (refusal) return refusal.kind === "narrower" ? narrower(refusal.needed) : idInUse(refusal.id);
    const resumes = request.method === "GET" && request.headers.has("last-event-id");
    // what is kept was sent to the tokens that the session was used with
    if (resumes && !hasAll(viewer.caller, calls.used)) return narrower([...calls.used]);
    session.lastUsed = Date.now();
    session.inFlight += 1;
    if (request.method === "GET") listeners.add(viewer);
    const ended = (): void => {
      session.inFlight -= 1;
      session.lastUsed = Date.now();
      listeners.delete(viewer);
    };
    try {
      const response = await session.transport.handleRequest(request, {
        ...(body !== undefined && { parsedBody: body }),
        ...(authInfo && { authInfo }),
      });
      if (!response.ok) calls.refused(body);
      const watched = endingWith(response, () => ended);
      if (watched === response) ended();
      return watched;
    } catch (error) {
      calls.refused(body);
      ended();
      throw error;
    }
  }

  /** Answers `initialize` and keeps the session it opened. */
  async open({ request, body, viewer: { caller }, authInfo }: SessionRequest): Promise<Response> {
    const calls = createSessionCalls();
    const listeners = new Set<Viewer>();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: new SessionEvents(),
      onsessioninitialized: (id) => {
        // here, where nothing can come between: many clients may be opening at once
        while (this.#sessions.size > 0 && this.#sessions.size >= this.#limits.max) this.#closeIdlest();
        const owner = callerKey(caller);
        this.#sessions.set(id, { transport, calls, listeners, owner, lastUsed: Date.now(), inFlight: 0 });
      },
      onsessionclosed: (id) => {
        this.#sessions.delete(id);
      },
    });
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      calls.sent(message, options?.relatedRequestId);
      return send(message, options);
    };
    calls.receive(body, caller);
    await this.#connect(() => listeners).connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: body, ...(authInfo && { authInfo }) });
    // refused before a session existed: nobody else would close the pair
    if (transport.sessionId === undefined) await transport.close();
    return response;
  }

  async close(): Promise<void> {
    clearInterval(this.#reaper);
    const open = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.allSettled(open.map((session) => session.transport.close()));
  }

  #drop(id: string, session: Session): void {
    this.#sessions.delete(id);
    session.transport.close().catch((error: unknown) => this.#log("warning", "closing a session failed", { error }));
  }

  #reap(): void {
    const oldest = Date.now() - this.#limits.idleTimeoutMs;
    for (const [id, session] of this.#sessions) {
      if (session.inFlight === 0 && session.lastUsed < oldest) this.#drop(id, session);
    }
  }

  /** Whose sessions are the most: one caller must not be able to end those of all others. */
  #greediest(): string | undefined {
    const counts = new Map<string, number>();
    let most: string | undefined;
    for (const { owner } of this.#sessions.values()) {
      const count = (counts.get(owner) ?? 0) + 1;
      counts.set(owner, count);
      if (most === undefined || count > (counts.get(most) ?? 0)) most = owner;
    }
    return most;
  }

  #closeIdlest(): void {
    const owner = this.#greediest();
    let idlest: [string, Session] | undefined;
    for (const entry of this.#sessions) {
      const [, one] = entry;
      if (one.owner !== owner) continue;
      const [, best] = idlest ?? entry;
      if (one.inFlight < best.inFlight || (one.inFlight === best.inFlight && one.lastUsed < best.lastUsed))
        idlest = entry;
      else idlest ??= entry;
    }
    if (idlest) this.#drop(...idlest);
  }
}

/** JSON-RPC has one answer an id (2025-11-25, requests: an id must not have been used before in the session). */
function idInUse(id: RequestId): Response {
  const message = `The id ${JSON.stringify(id)} is that of a request which still runs in this session; give each its own`;
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32600, message } }, { status: 400 });
}

/** 404 tells a legacy client to initialize again (2025-11-25, session management). */
export function notFound(): Response {
  const body = { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found; initialize again" } };
  return Response.json(body, { status: 404 });
}
