import { checkOptions } from "@tenon/core/internal";
import type { LeaseStore } from "./leases.ts";
import { createMemoryStore, type MemoryStoreOptions } from "./memory.ts";
import { createMemoryLeases } from "./memory-leases.ts";
import type { OutcomeStore } from "./outcomes.ts";

/**
 * Everything durable in one place, under one owner: whoever opened it closes it. Its stores are handed to those who need one;
 * the `close()` of a single store ends only that store.
 */
export interface Stores extends AsyncDisposable {
  readonly outcomes: OutcomeStore;
  readonly leases: LeaseStore;
  close(): Promise<void>;
}

/** Puts stores together under one `close()`. */
export function bundle(parts: { readonly outcomes: OutcomeStore; readonly leases: LeaseStore }): Stores {
  const close = async (): Promise<void> => {
    await Promise.all(Object.values(parts).map((part) => part.close()));
  };
  return { ...parts, close, [Symbol.asyncDispose]: close };
}

/**
 * All stores in the memory of this process: what they hold ends with it.
 * @throws ConfigError for an unknown option or a limit that is not positive
 * @example await using stores = openMemory();
 */
export function openMemory(options: MemoryStoreOptions = {}): Stores {
  checkOptions(options, ["maxEntries", "maxBytes", "leaseMs"], "openMemory(options)");
  return bundle({ outcomes: createMemoryStore(options), leases: createMemoryLeases() });
}
