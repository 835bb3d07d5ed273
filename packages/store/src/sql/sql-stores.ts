import { createAudit } from "../audit/audit-store.ts";
import { createSqlAuditTable } from "../audit/sql-audit.ts";
import { createSqlContexts } from "../context/sql-contexts.ts";
import { createEventBus } from "../event/bus.ts";
import { createSqlLeases } from "../lease/sql-leases.ts";
import { createSqlOutcomes } from "../outcome/sql-outcomes.ts";
import { bundle, type Stores } from "../stores.ts";
import type { TaskQueue } from "../task/queue.ts";
import { createSqlTasks } from "../task/sql-tasks.ts";
import type { SqlSide } from "./side.ts";

/**
 * All stores over one database.
 * @param attach gives each store an access of its own, which it closes
 * @param queueOf which tasks are due, in the way of this database
 */
export function createSqlStores(attach: () => SqlSide, leaseMs: number, queueOf: (side: SqlSide) => TaskQueue): Stores {
  const [tasks, events, audit] = [attach(), attach(), attach()];
  return bundle({
    outcomes: createSqlOutcomes(attach(), leaseMs),
    leases: createSqlLeases(attach()),
    contexts: createSqlContexts(attach()),
    tasks: createSqlTasks(tasks, leaseMs, queueOf(tasks)),
    events: createEventBus(events.signals, events.close),
    audit: createAudit(createSqlAuditTable(audit), {
      leases: createSqlLeases(attach()),
      leaseMs,
      signals: audit.signals,
    }),
  });
}
