import { ConfigError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { AuditStore } from "./audit/audit.ts";
import { createAudit } from "./audit/audit-store.ts";
import { createMemoryAuditTable } from "./audit/memory-audit.ts";
import type { ContextStore } from "./context/contexts.ts";
import { createMemoryContexts } from "./context/memory-contexts.ts";
import { createEventBus } from "./event/bus.ts";
import type { EventBus } from "./event/events.ts";
import { createLocalSignals } from "./event/signals.ts";
import type { LeaseStore } from "./lease/leases.ts";
import { createMemoryLeases } from "./lease/memory-leases.ts";
import { createMemoryOutcomes, MAX_BYTES, MAX_ENTRIES, type MemoryOptions } from "./outcome/memory-outcomes.ts";
import { checkLeaseMs, LEASE_MS, type OutcomeStore } from "./outcome/outcomes.ts";
import { createMemoryTasks } from "./task/memory-tasks.ts";
import type { TaskStore } from "./task/tasks.ts";

/** The stores that are put together. */
interface Parts {
  readonly outcomes: OutcomeStore;
  readonly leases: LeaseStore;
  readonly tasks: TaskStore;
  readonly contexts: ContextStore;
  readonly events: EventBus;
  readonly audit: AuditStore;
}

/**
 * Everything durable in one place, under one owner: whoever opened it closes it. `createServer({ store })` takes all of it; its stores
 * are handed to those who need one;
 * the `close()` of a single store ends only that store.
 */
export interface Stores extends AsyncDisposable {
  /** Which questions were answered, and how idempotent calls ended. */
  readonly outcomes: OutcomeStore;
  /** For the agent's `leases`: who works on a thread. */
  readonly leases: LeaseStore;
  /** Work that outlives the call that began it. */
  readonly tasks: TaskStore;
  /** For `createServer({ contract })`: the last context of each session. */
  readonly contexts: ContextStore;
  /** Word of changes, to whoever listens. */
  readonly events: EventBus;
  /** For the client's `audit({ sink: stores.audit.sink() })`: what was called, by whom, and what came of it. */
  readonly audit: AuditStore;
  /**
   * Deletes what has expired, makes tasks of runners that fell silent due again, and closes open entries of the audit trail.
   * Stores also do this on their own now and then, when they are used: this is for programs that rarely are, and for `cron`.
   */
  sweep(): Promise<Swept>;
  /** Ends all of them, and the connection they share. */
  close(): Promise<void>;
}

/** What a sweep of all stores did. */
export interface Swept {
  /** Outcomes and texts deleted. */
  readonly outcomes: number;
  /** Names of leases forgotten. */
  readonly leases: number;
  readonly tasks: Awaited<ReturnType<TaskStore["sweep"]>>;
  /** Contexts of sessions forgotten. */
  readonly contexts: number;
  /** Calls in the audit trail whose process is gone: given the outcome `unknown`. Nothing is ever deleted from it. */
  readonly audit: number;
}

/** Puts stores together under one `close()`. */
export function bundle(parts: Parts): Stores {
  const close = async (): Promise<void> => {
    await Promise.all(Object.values(parts).map((part) => part.close()));
  };
  const sweep = async (): Promise<Swept> => ({
    outcomes: await parts.outcomes.sweep(),
    leases: await parts.leases.sweep(),
    tasks: await parts.tasks.sweep(),
    contexts: await parts.contexts.sweep(),
    audit: (await parts.audit.sweep()).length,
  });
  return { ...parts, sweep, close, [Symbol.asyncDispose]: close };
}

/**
 * All stores in the memory of this process: what they hold ends with it. Bounded: what has expired goes first, then the oldest
 * finished outcomes and the oldest ended tasks; work that runs is never dropped. A dropped outcome means that its retry runs
 * again: size it for your traffic. Full of tasks that have not ended, it refuses another with a TasksFullError.
 * @throws ConfigError for an unknown option or a limit that is not positive
 * @example await using stores = openMemory();
 */
export function openMemory(options: MemoryOptions = {}): Stores {
  checkOptions(options, ["maxEntries", "maxTasks", "maxBytes", "leaseMs"], "openMemory(options)");
  const { maxEntries = MAX_ENTRIES, maxTasks = MAX_ENTRIES, maxBytes = MAX_BYTES } = options;
  if (!(maxTasks > 0)) {
    throw new ConfigError(`openMemory(options): maxTasks must be positive, got ${maxTasks}`, { code: "limit" });
  }
  const leaseMs = checkLeaseMs(options.leaseMs ?? LEASE_MS, "openMemory(options)");
  const signals = createLocalSignals();
  return bundle({
    outcomes: createMemoryOutcomes(options),
    leases: createMemoryLeases(),
    contexts: createMemoryContexts({ maxEntries, maxBytes }),
    tasks: createMemoryTasks({ maxTasks, maxBytes, leaseMs }, signals),
    events: createEventBus(signals, async () => undefined),
    audit: createAudit(createMemoryAuditTable(), { leases: createMemoryLeases(), leaseMs, signals }),
  });
}
