import { checkOptions } from "@tenon/core/internal";
import type { AuditStore } from "./audit/audit.ts";
import { createAudit } from "./audit/audit-store.ts";
import { createMemoryAuditTable } from "./audit/memory-audit.ts";
import type { LeaseStore } from "./lease/leases.ts";
import { createMemoryLeases } from "./lease/memory-leases.ts";
import { createMemoryOutcomes, type MemoryOptions } from "./outcome/memory-outcomes.ts";
import { LEASE_MS, type OutcomeStore } from "./outcome/outcomes.ts";

/**
 * Everything durable in one place, under one owner: whoever opened it closes it. Its stores are handed to those who need one;
 * the `close()` of a single store ends only that store.
 */
export interface Stores extends AsyncDisposable {
  /** For `createServer({ store })`: which questions were answered, and how idempotent calls ended. */
  readonly outcomes: OutcomeStore;
  /** For the agent's `leases`: who works on a thread. */
  readonly leases: LeaseStore;
  /** For the client's `audit({ sink: stores.audit.sink() })`: what was called, by whom, and what came of it. */
  readonly audit: AuditStore;
  /** Ends all of them, and the connection they share. */
  close(): Promise<void>;
}

/** Puts stores together under one `close()`. */
export function bundle(parts: Omit<Stores, "close" | typeof Symbol.asyncDispose>): Stores {
  const close = async (): Promise<void> => {
    await Promise.all(Object.values(parts).map((part) => part.close()));
  };
  return { ...parts, close, [Symbol.asyncDispose]: close };
}

/**
 * All stores in the memory of this process: what they hold ends with it. Bounded: what has expired goes first, then the oldest
 * finished outcomes; work that runs is never dropped. A dropped outcome means that its retry runs again: size it for your traffic.
 * @throws ConfigError for an unknown option or a limit that is not positive
 * @example await using stores = openMemory();
 */
export function openMemory(options: MemoryOptions = {}): Stores {
  checkOptions(options, ["maxEntries", "maxBytes", "leaseMs"], "openMemory(options)");
  return bundle({
    outcomes: createMemoryOutcomes(options),
    leases: createMemoryLeases(),
    audit: createAudit(createMemoryAuditTable(), {
      leases: createMemoryLeases(),
      leaseMs: options.leaseMs ?? LEASE_MS,
    }),
  });
}
