import { randomUUID } from "node:crypto";
import { type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { ServerLog } from "./log.ts";

interface Session {
  transport: WebStandardStreamableHTTPServerTransport;
  lastUsed: number;
  inFlight: number;
}

/** Limits of legacy sessions, which a client may open and forget. */
export interface SessionLimits {
  /** Sessions at once; one more closes the one idle longest. Default 1,000. */
  max: number;
  /** Milliseconds without a request until a session is closed. Default 30 minutes. */
  idleMs: number;
}

export const SESSION_LIMITS: SessionLimits = { max: 1_000, idleMs: 30 * 60_000 };

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
    this.#reaper = setInterval(() => this.#reap(), Math.min(60_000, limits.idleMs));
    this.#reaper.unref();
  }

  get size(): number {
    return this.#sessions.size;
  }

  has(id: string): boolean {
    return this.#sessions.has(id);
  }

  /** Answers a request of a known session. */
  async handle(id: string, request: Request, parsedBody: unknown, authInfo: never): Promise<Response> {
    const session = this.#sessions.get(id);
    if (!session) return notFound();
    session.lastUsed = Date.now();
    session.inFlight += 1;
    try {
      return await session.transport.handleRequest(request, {
        ...(parsedBody !== undefined && { parsedBody }),
        authInfo,
      });
    } finally {
      session.inFlight -= 1;
      session.lastUsed = Date.now();
    }
  }

  /** Answers `initialize` and keeps the session it opened. */
  async open(request: Request, parsedBody: unknown, authInfo: never): Promise<Response> {
    if (this.#sessions.size >= this.#limits.max) this.#closeIdlest();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { transport, lastUsed: Date.now(), inFlight: 0 });
      },
      onsessionclosed: (id) => {
        this.#sessions.delete(id);
      },
    });
    await this.#connect().connect(transport);
    return transport.handleRequest(request, { parsedBody, authInfo });
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
    const oldest = Date.now() - this.#limits.idleMs;
    for (const [id, session] of this.#sessions) {
      if (session.inFlight === 0 && session.lastUsed < oldest) this.#drop(id, session);
    }
  }

  #closeIdlest(): void {
    const idle = [...this.#sessions].sort(([, a], [, b]) => a.inFlight - b.inFlight || a.lastUsed - b.lastUsed)[0];
    if (idle) this.#drop(...idle);
  }
}

/** 404 tells a legacy client to initialize again (2025-11-25, session management). */
export function notFound(): Response {
  const body = { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found; initialize again" } };
  return Response.json(body, { status: 404 });
}
