import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const dataDirectory = await mkdtemp(join(tmpdir(), "storing-"));
delete process.env.TENON_DATABASE_URL; // the page shows what happens without
const heard: unknown[] = [];

// #region first
import { openStores } from "@tenon/store/open";

const stores = await openStores({ directory: dataDirectory });

const { state, lease } = await stores.leases.acquire("nightly-report", "worker-1", 30_000);
if (state === "yours") {
  stores.events.subscribe("reports", (message) => heard.push(message));
  await stores.events.publish("reports", { id: "2026-11-30" });
  await stores.leases.release(lease);
}
// #endregion
assert.equal(state, "yours");
await new Promise((resolve) => setTimeout(resolve, 50));
assert.deepEqual(heard, [{ id: "2026-11-30" }]);

// #region create
import { randomUUID } from "node:crypto";

const task = await stores.tasks.create({
  id: randomUUID(),
  server: "orders",
  tool: "reconcile",
  owner: "digest of who asked",
  call: { arguments: { day: "2026-11-30" } },
  ttlMs: 24 * 60 * 60 * 1_000,
  pollIntervalMs: 1_000,
});
// #endregion

const refunded: string[] = [];
const refund = async (order: string): Promise<string> => {
  refunded.push(order);
  return `${order} refunded`;
};
const orders = ["ORD-001", "ORD-002"];

// #region run
const run = await stores.tasks.take(["orders"], `process ${process.pid}`);
if (run) {
  for (const order of orders) {
    if (run.steps.has(order)) continue; // an earlier run got this far
    await run.record(order, [await refund(order)]);
    await run.report({ statusMessage: `${order} is done` });
  }
  await run.finish({ status: "completed", result: { refunded: orders.length } });
}
// #endregion
assert.deepEqual(refunded, orders);

// #region found
const found = await stores.tasks.find(task.id); // here, or in any process on the same database
console.log(found?.status, found?.result); // completed { refunded: 2 }
// #endregion
assert.equal(found?.status, "completed");
assert.deepEqual(found?.result, { refunded: 2 });

// #region sweep
const { outcomes, leases, tasks, audit } = await stores.sweep();
console.log(
  `${outcomes + leases + tasks.deleted} records deleted, ${tasks.requeued} tasks due again, ${audit} calls unknown`,
);
// #endregion
assert.equal(outcomes + leases + tasks.requeued + tasks.ended + tasks.deleted + audit, 0);

// #region connections
import { openPostgres } from "@tenon/store/postgres";

const shared = openPostgres({
  url: "postgres://tenon@db.example.com:5432/tenon",
  schema: "tenon",
  maxConnections: 10,
  connectionTimeoutMs: 10_000,
  statementTimeoutMs: 30_000,
});
// #endregion
await shared.close(); // nothing was asked of it, so nothing was connected
await stores.close();
await rm(dataDirectory, { recursive: true });
