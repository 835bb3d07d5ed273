import type { JsonObject } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import type { ContextStore, KeptContext } from "@tenon/store";
import { callerKey, identityOfCaller } from "../auth/caller.ts";
import type { Caller } from "../handler/context.ts";
import { within } from "../handler/within.ts";
import type { ServerLog } from "../log.ts";

/** Keeps the last accepted context of each session. */
export interface Remembering {
  /** Notes what was just accepted. Costs a comparison; it is written when it changed, and when its time is half over. */
  note(session: string, caller: Caller | undefined, context: Readonly<JsonObject>): void;
  find(session: string, caller: Caller | undefined): Promise<KeptContext | undefined>;
  /** Writes down what is not written yet. */
  close(): Promise<void>;
}

/** Sessions that are compared with without asking the store. */
const MAX_SESSIONS = 10_000;
/** Characters of their contexts together, as they were last written. */
const MAX_CHARS = 16 * 1024 * 1024;
/** Writes that a store has to do at a time, and sessions that wait for one: with a store that is slow or hangs, both would pile up. */
const MAX_WRITES = 100;
const MAX_WAITING = 1_000;
/** Milliseconds between two writes of one session: a context with a trace id changes with every call. */
const WRITE_EVERY_MS = 1_000;
/** Milliseconds that closing waits for the store. */
const CLOSE_MS = 2_000;
/** Milliseconds between two lines of the log about a store that does not take them. */
const COMPLAIN_EVERY_MS = 60_000;

interface Entry {
  readonly key: string;
  readonly session: string;
  readonly owner: string;
  context: Readonly<JsonObject>;
  /** Characters of the one that was written last. */
  size: number;
  /** Milliseconds of the process's clock; long ago before the first time. */
  writtenAt: number;
  /** The last write did not succeed. */
  failed: boolean;
  dirty: boolean;
  writing: Promise<void> | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** Who a context belongs to, without saying who they are. Callers without a token are one: the session's name is all they have. */
const ownerOf = (caller: Caller | undefined): string => digest(["context", identityOfCaller(caller)]);

/** Whether two contexts say the same: nearly all are flat, and comparing is cheaper than writing them as text. */
function same(a: Readonly<JsonObject>, b: Readonly<JsonObject>): boolean {
  let left = 0;
  for (const key in a) {
    const value = a[key];
    if (typeof value === "object" && value !== null) return JSON.stringify(a) === JSON.stringify(b);
    if (value !== b[key]) return false;
    left += 1;
  }
  for (const _ in b) left -= 1;
  return left === 0;
}

/** @param ttlMs how long a context is kept after it was last accepted, at least half of it */
export function createRemembering(
  store: ContextStore,
  { server, ttlMs, log }: { server: string; ttlMs: number; log: ServerLog },
): Remembering {
  const entries = new Map<string, Entry>();
  const waiting = new Set<Entry>();
  let writes = 0;
  let chars = 0;
  let closed = false;
  let complained = Number.NEGATIVE_INFINITY;

  /** Calls go on without: it is for who asks what the last context was. */
  function complain(about: Record<string, unknown>): void {
    const now = performance.now();
    if (now - complained < COMPLAIN_EVERY_MS) return;
    complained = now;
    log("warning", "the last context of a session could not be kept", about);
  }

  async function write(entry: Entry): Promise<void> {
    writes += 1;
    entry.dirty = false;
    entry.failed = false;
    entry.writtenAt = performance.now();
    const { owner, session, context } = entry;
    const size = JSON.stringify(context).length;
    if (entries.get(entry.key) === entry) chars += size - entry.size;
    entry.size = size;
    makeRoom();
    try {
      await store.put({ server, owner, session }, context, ttlMs);
    } catch (error) {
      entry.failed = true;
      complain({ error });
    } finally {
      writes -= 1;
    }
  }

  /** Writes now what is to be written; of one session there is one write at a time. */
  async function flush(entry: Entry): Promise<void> {
    clearTimeout(entry.timer);
    entry.timer = undefined;
    if (entry.writing) await entry.writing;
    if (!entry.dirty) return;
    waiting.delete(entry);
    entry.writing ??= write(entry).finally(() => {
      entry.writing = undefined;
      // what came meanwhile is written in its turn, unless somebody waits for it
      if (entry.dirty && !closed) plan(entry);
      const [next] = waiting;
      if (next && writes < MAX_WRITES) void flush(next);
    });
    await entry.writing;
  }

  /** Has it written once the store can take it; what it is too far behind for is not kept. */
  function begin(entry: Entry): void {
    if (writes < MAX_WRITES) void flush(entry);
    else if (waiting.size < MAX_WAITING) waiting.add(entry);
    else {
      clearTimeout(entry.timer);
      entry.dirty = false;
      if (entries.get(entry.key) === entry) {
        entries.delete(entry.key);
        chars -= entry.size;
      }
      complain({ reason: `the store is ${MAX_WAITING} contexts behind` });
    }
  }

  function plan(entry: Entry): void {
    if (entry.timer || entry.writing) return;
    const waitMs = entry.writtenAt + WRITE_EVERY_MS - performance.now();
    if (waitMs <= 0) begin(entry);
    else entry.timer = setTimeout(() => begin(entry), waitMs).unref();
  }

  function makeRoom(): void {
    for (const [key, entry] of entries) {
      if (entries.size <= MAX_SESSIONS && chars <= MAX_CHARS) return;
      entries.delete(key);
      chars -= entry.size;
      if (entry.dirty && !waiting.has(entry)) begin(entry);
    }
  }

  return {
    note(session, caller, context) {
      const key = `${callerKey(caller)}\n${session}`;
      const known = entries.get(key);
      if (known) {
        // what is about to be written is the newest anyway
        const kept = known.dirty || (!known.failed && performance.now() - known.writtenAt < ttlMs / 2);
        if (kept && (known.context === context || same(known.context, context))) return;
        known.context = context;
        if (known.dirty) return;
      }
      const entry = known ?? {
        key,
        session,
        owner: ownerOf(caller),
        context,
        size: 0,
        writtenAt: Number.NEGATIVE_INFINITY,
        failed: false,
        dirty: false,
        writing: undefined,
        timer: undefined,
      };
      entry.dirty = true;
      if (!known) entries.set(key, entry);
      if (!known) makeRoom();
      plan(entry);
    },
    async find(session, caller) {
      const entry = entries.get(`${callerKey(caller)}\n${session}`);
      if (entry?.dirty || entry?.writing) await flush(entry);
      return store.get({ server, owner: ownerOf(caller), session });
    },
    async close() {
      closed = true;
      const written = Promise.all([...entries.values(), ...waiting].map(flush));
      // a store that does not answer must not keep a process from ending
      await within(CLOSE_MS, written, () => new Error("late")).catch(() => undefined);
      entries.clear();
    },
  };
}
