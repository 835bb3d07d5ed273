import type { JsonObject } from "@tenon/core";
import { createMemoryClock } from "../lease/memory-clock.ts";
import { type ContextStore, contextRow, contextText } from "./contexts.ts";

const SWEEP_EVERY_MS = 60_000;

/**
 * Contexts in the memory of this process: they end with it. Bounded: what has expired goes first, then what was written longest
 * ago.
 */
export function createMemoryContexts({ maxEntries, maxBytes }: { maxEntries: number; maxBytes: number }): ContextStore {
  const kept = new Map<string, { text: string; expiresAt: number }>();
  const clock = createMemoryClock();
  let bytes = 0;
  let swept = clock();

  function remove(row: string): void {
    bytes -= kept.get(row)?.text.length ?? 0;
    kept.delete(row);
  }

  function sweep(now: number): number {
    swept = now;
    const before = kept.size;
    for (const [row, { expiresAt }] of kept) if (expiresAt <= now) remove(row);
    return before - kept.size;
  }

  return {
    shared: false,
    async put(key, context, ttlMs) {
      const row = contextRow(key);
      const text = contextText(context);
      const now = clock();
      if (now - swept >= SWEEP_EVERY_MS) sweep(now);
      remove(row);
      kept.set(row, { text, expiresAt: now + ttlMs });
      bytes += text.length;
      if (kept.size > maxEntries || bytes > maxBytes) sweep(now);
      for (const oldest of kept.keys()) {
        if (kept.size <= maxEntries && bytes <= maxBytes) break;
        remove(oldest);
      }
    },
    async get(key) {
      const found = kept.get(contextRow(key));
      const leftMs = (found?.expiresAt ?? 0) - clock();
      if (!found || leftMs <= 0) return undefined;
      return { context: JSON.parse(found.text) as JsonObject, expiresAt: Date.now() + leftMs }; // put() wrote it
    },
    sweep: async () => sweep(clock()),
    async close() {
      kept.clear();
      bytes = 0;
    },
  };
}
