import { randomUUID } from "node:crypto";
import { type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { callerKey } from "../auth/caller.ts";
import type { Caller } from "../handler/context.ts";
import type { ServerLog } from "../log.ts";
import { SessionEvents } from "./event-store.ts";

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
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

/** Calls `ended` once when the stream is read to its end, cut off or broken. */
function watchEnd(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          ended();
          controller.close();
        } else controller.enqueue(value);
      } catch (error) {
        ended();
        controller.error(error);
      }
    },
    async cancel(reason) {
      ended();
      await reader.cancel(reason).catch(() => undefined); // the transport closed it first
    },
  });
}

/** Sessions of the 2025-11-25 revision: one protocol instance each, so that a question can be pushed into a running call. */
export class LegacySessions {
  readonly #sessions = new Map<string, Session>();
  readonly #connect: () => Server;
  readonly #limits: SessionLimits;
  readonly #log: ServerLog;
  readonly #reaper: NodeJS.Timeout;

  constructor(connect: () => Server, limits: SessionLimits, log: ServerLog) {
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
  async handle(id: string, request: Request, parsedBody: unknown, caller: Caller | undefined, authInfo: never) {
    const session = this.#sessions.get(id);
    if (!session || session.owner !== callerKey(caller)) return notFound();
    session.lastUsed = Date.now();
    session.inFlight += 1;
    let open = true;
    const ended = (): void => {
      if (!open) return;
      open = false;
      session.inFlight -= 1;
      session.lastUsed = Date.now();
    };
    try {
      const response = await session.transport.handleRequest(request, {
        ...(parsedBody !== undefined && { parsedBody }),
        authInfo,
      });
      if (response.body && response.headers.get("content-type")?.startsWith("text/event-stream")) {
        return new Response(watchEnd(response.body, ended), { status: response.status, headers: response.headers });
      }
      ended();
      return response;
    } catch (error) {
      ended();
      throw error;
    }
  }

  /** Answers `initialize` and keeps the session it opened. */
  async open(request: Request, parsedBody: unknown, caller: Caller | undefined, authInfo: never): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: new SessionEvents(),
      onsessioninitialized: (id) => {
        // here, where nothing can come between: many clients may be opening at once
        while (this.#sessions.size > 0 && this.#sessions.size >= this.#limits.max) this.#closeIdlest();
        this.#sessions.set(id, { transport, owner: callerKey(caller), lastUsed: Date.now(), inFlight: 0 });
      },
      onsessionclosed: (id) => {
        this.#sessions.delete(id);
      },
    });
    await this.#connect().connect(transport);
    const response = await transport.handleRequest(request, { parsedBody, authInfo });
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

/** 404 tells a legacy client to initialize again (2025-11-25, session management). */
export function notFound(): Response {
  const body = { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found; initialize again" } };
  return Response.json(body, { status: 404 });
}
