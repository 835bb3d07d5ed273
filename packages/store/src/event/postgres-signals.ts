import { isRecord, type Json } from "@tenon/core";
import { type Kysely, sql } from "kysely";
import pg from "pg";
import type { Tables } from "../sql/side.ts";
import { Listeners, type Signal, type Signals } from "./signals.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** How often the connection is asked whether it is there: a cut one may say nothing. */
const BEAT_MS = 15_000;

/** What the listening connection is opened with. */
export interface ListenOptions {
  readonly config: pg.ClientConfig;
  /** Letters, digits and `_`. */
  readonly channel: string;
  /** Milliseconds after which it counts as dead when it does not answer. */
  readonly answerMs: number;
  db(): Promise<Kysely<Tables>>;
}

/**
 * Signals to every process of a database, over LISTEN and NOTIFY. The one connection that listens is opened with the first
 * listener and closed with the last, opened again when it breaks, and keeps no process alive.
 */
export function createPostgresSignals({ config, channel, answerMs, db }: ListenOptions): Signals {
  const listeners = new Listeners();
  let client: pg.Client | undefined;
  /** The attempt to listen that is under way. */
  let connecting: Promise<void> | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let retry: NodeJS.Timeout | undefined;
  let beat: NodeJS.Timeout | undefined;
  let closed = false;

  function hear(payload: string | undefined): void {
    let signal: unknown;
    try {
      signal = JSON.parse(payload ?? "");
    } catch {
      return; // not ours
    }
    // whoever may connect to the database may send on our channel
    if (!isRecord(signal) || typeof signal.t !== "string" || signal.m === undefined) return;
    listeners.tell({ topic: signal.t, message: signal.m as Json }); // it comes out of JSON
  }

  /** Ends a connection, also one that does not answer. */
  function drop(which: pg.Client): void {
    clearInterval(beat);
    if (client === which) client = undefined;
    which.removeAllListeners("notification");
    void which.end().catch(() => undefined);
  }

  /** Ends a connection that does not answer a query in time, which fails the query. */
  async function within(which: pg.Client, query: Promise<unknown>): Promise<void> {
    const late = setTimeout(() => void which.end().catch(() => undefined), answerMs);
    late.unref();
    try {
      await query;
    } finally {
      clearTimeout(late);
    }
  }

  function lost(which: pg.Client): void {
    if (client !== which) return;
    drop(which);
    reconnect();
  }

  function reconnect(): void {
    if (closed || listeners.size === 0 || retry) return;
    retry = setTimeout(() => {
      retry = undefined;
      connect();
    }, pauseMs);
    retry.unref();
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }

  async function open(): Promise<void> {
    const opened = new pg.Client({ ...config, keepAlive: true });
    opened.on("error", () => lost(opened));
    opened.on("end", () => lost(opened));
    opened.on("notification", ({ payload }) => hear(payload));
    try {
      await opened.connect();
      client = opened;
      await within(opened, opened.query(`listen ${channel}`));
    } catch {
      client = undefined;
      drop(opened);
      return reconnect();
    }
    if (closed || listeners.size === 0) return drop(opened);
    (opened as pg.Client & { unref(): void }).unref(); // there since pg 8.0, and missing in its types
    pauseMs = FIRST_PAUSE_MS;
    beat = setInterval(() => {
      void within(opened, opened.query("select 1")).catch(() => lost(opened));
    }, BEAT_MS);
    beat.unref();
    listeners.gap(); // whatever was sent while nobody listened
  }

  function connect(): void {
    if (closed || client || connecting || listeners.size === 0) return;
    connecting = open().finally(() => {
      connecting = undefined;
    });
  }

  const payloadOf = ({ topic, message }: Signal): string => JSON.stringify({ t: topic, m: message });
  const notify = async (queries: Kysely<Tables>, signals: readonly Signal[]): Promise<void> => {
    if (signals.length === 0) return;
    const sent = sql.join(signals.map((signal) => sql`pg_notify(${channel}, ${payloadOf(signal)})`));
    await sql`select ${sent}`.execute(queries);
  };

  return {
    shared: true,
    async send(signal) {
      await connecting; // so that a listener of this process that has just begun hears it
      await notify(await db(), [signal]);
    },
    inside: notify,
    after: () => undefined,
    listen(topic, listener) {
      const end = listeners.add(topic, listener);
      connect();
      return () => {
        end();
        if (listeners.size > 0) return;
        clearTimeout(retry);
        retry = undefined;
        if (client) drop(client);
      };
    },
    async close() {
      closed = true;
      listeners.clear();
      clearTimeout(retry);
      await connecting;
      if (client) drop(client);
    },
  };
}
