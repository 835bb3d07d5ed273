import { ConfigError, type Json } from "@tenon/core";
import { createMemoryClock } from "../lease/memory-clock.ts";
import {
  type ClaimedBefore,
  decideClaim,
  LEASE_MS,
  type Lease,
  LeaseLostError,
  type OutcomeStore,
} from "./outcomes.ts";

/** How much is kept in memory. */
export interface MemoryOptions {
  /** Records and blobs at once, and as many contexts of sessions. Default 10,000. */
  maxEntries?: number;
  /** Tasks at once. Default 10,000. */
  maxTasks?: number;
  /** Bytes of outcomes, progress and blobs together, and as many again of tasks and their steps, and of contexts. Default 64 MiB. */
  maxBytes?: number;
  /** Milliseconds a claim on an outcome or the run of a task lasts unless it is renewed. Default 15 seconds. */
  leaseMs?: number;
}

interface Entry extends ClaimedBefore {
  status: "free" | "running" | "finished";
  begun: boolean;
  fence: number;
  leaseUntil: number;
  expiresAt: number;
  progress: Map<string, string>;
  outcome: string | undefined;
}

/** How much is kept unless somebody says otherwise. */
export const MAX_ENTRIES = 10_000;
/** The same in bytes. */
export const MAX_BYTES = 64 * 1024 * 1024;

/** A Map in the order of last writing that knows how many bytes it holds and lets the oldest go first. */
class Shelf<V> {
  readonly items = new Map<string, V>();
  bytes = 0;
  readonly #sizeOf: (value: V) => number;

  constructor(sizeOf: (value: V) => number) {
    this.#sizeOf = sizeOf;
  }

  delete(key: string): void {
    const found = this.items.get(key);
    if (found === undefined) return;
    this.bytes -= this.#sizeOf(found);
    this.items.delete(key);
  }

  /** Puts `value` last; `change` happens between, so that the count follows. */
  write(key: string, value: V, change?: (value: V) => void): void {
    this.delete(key);
    change?.(value);
    this.items.set(key, value);
    this.bytes += this.#sizeOf(value);
  }
}

/**
 * Outcomes in the memory of this process: they end with it. Bounded: what has expired goes first, then the oldest finished
 * outcomes and blobs; work that runs is never dropped. A dropped outcome means that its retry runs again: size it for your traffic.
 * @throws ConfigError for a limit that is not positive
 */
export function createMemoryOutcomes(options: MemoryOptions): OutcomeStore {
  const { maxEntries = MAX_ENTRIES, maxBytes = MAX_BYTES, leaseMs = LEASE_MS } = options;
  for (const [name, value] of Object.entries({ maxEntries, maxBytes, leaseMs })) {
    if (!(value > 0))
      throw new ConfigError(`openMemory(options): ${name} must be positive, got ${value}`, { code: "limit" });
  }
  const clock = createMemoryClock();
  const entries = new Shelf<Entry>(
    (entry) => (entry.outcome?.length ?? 0) + [...entry.progress.values()].reduce((sum, text) => sum + text.length, 0),
  );
  const blobs = new Shelf<{ text: string; expiresAt: number }>((blob) => blob.text.length);

  function sweep(): number {
    const now = clock();
    let swept = 0;
    for (const shelf of [entries, blobs]) {
      for (const [key, { expiresAt }] of shelf.items) {
        if (expiresAt > now) continue;
        shelf.delete(key);
        swept += 1;
      }
    }
    return swept;
  }

  function makeRoom(): void {
    const full = (): boolean =>
      entries.items.size + blobs.items.size > maxEntries || entries.bytes + blobs.bytes > maxBytes;
    if (!full()) return;
    sweep();
    for (const [key, entry] of entries.items) {
      if (!full()) return;
      if (entry.status !== "running") entries.delete(key);
    }
    for (const key of blobs.items.keys()) {
      if (!full()) return;
      blobs.delete(key);
    }
  }

  function held({ key, fence }: Lease): Entry | undefined {
    const entry = entries.items.get(key);
    return entry?.status === "running" && entry.fence === fence ? entry : undefined;
  }

  function change(lease: Lease, how: (entry: Entry) => void): void {
    const entry = held(lease);
    if (!entry) throw new LeaseLostError(lease);
    entries.write(lease.key, entry, how);
    makeRoom();
  }

  return {
    shared: false,
    leaseMs,
    async claim({ key, digest, ttlMs }) {
      const now = clock();
      const before = entries.items.get(key);
      const decision = decideClaim(before, digest, now);
      if (decision === "finished") return { state: "finished", outcome: JSON.parse(before?.outcome ?? "null") as Json }; // finish() wrote it
      if (typeof decision === "string") return { state: decision };
      const { fence, keepProgress } = decision.take;
      const progress = keepProgress && before ? before.progress : new Map<string, string>();
      const entry: Entry = {
        digest,
        status: "running",
        begun: keepProgress && before ? before.begun : false,
        fence,
        leaseUntil: now + leaseMs,
        expiresAt: now + ttlMs,
        progress,
        outcome: undefined,
      };
      entries.write(key, entry);
      makeRoom();
      return {
        state: "yours",
        lease: { key, fence },
        progress: Object.fromEntries([...progress].map(([name, text]) => [name, JSON.parse(text) as Json])), // record() wrote it
      };
    },
    async begin(lease) {
      change(lease, (entry) => {
        entry.begun = true;
      });
    },
    async record(lease, name, value) {
      change(lease, (entry) => {
        entry.begun = true;
        entry.progress.set(name, JSON.stringify(value));
      });
    },
    async renew(lease) {
      const entry = held(lease);
      if (entry) entry.leaseUntil = clock() + leaseMs;
      return entry !== undefined;
    },
    async finish(lease, outcome, { ttlMs, also = [] }) {
      const text = JSON.stringify(outcome);
      const end = (entry: Entry): void => {
        entry.status = "finished";
        entry.outcome = text;
        entry.progress = new Map();
        entry.expiresAt = clock() + ttlMs;
      };
      change(lease, end);
      for (const key of also) {
        const entry = entries.items.get(key);
        if (entry?.status === "finished") entries.write(key, entry, end);
      }
    },
    async release(lease) {
      const entry = held(lease);
      if (entry) entry.status = "free";
    },
    async putBlob(id, text, ttlMs) {
      blobs.write(id, { text, expiresAt: clock() + ttlMs });
      makeRoom();
    },
    async getBlob(id) {
      const blob = blobs.items.get(id);
      return blob && blob.expiresAt > clock() ? blob.text : undefined;
    },
    sweep: async () => sweep(),
    async close() {
      for (const shelf of [entries, blobs]) {
        shelf.items.clear();
        shelf.bytes = 0;
      }
    },
  };
}
