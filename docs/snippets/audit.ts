import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "@tenon/server";
import { z } from "zod";

const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined }).tool(
  "refund",
  { input: z.object({ order_id: z.string(), password: z.string() }) },
  ({ order_id }) => `${order_id} refunded`,
);
const { url } = await orders.listen({ port: 0 });
const folder = await mkdtemp(join(tmpdir(), "audit-"));
const data = (name: string): string => join(folder, name);

// #region first
import { createClient, type ToolRuntime } from "@tenon/client";
import { audit } from "@tenon/client/interceptors";
import { openSqlite } from "@tenon/store/sqlite";

type Runtime = ToolRuntime<{ userId: string }>;

const stores = openSqlite({ path: data("audit.sqlite") }); // or openPostgres({ url })
const client = createClient<Runtime>({
  servers: { order: { url } },
  interceptors: [
    audit({
      sink: stores.audit.sink(),
      redact: { patterns: ["bearer", "jwt", "phone"] }, // arguments are kept without these, and without passwords
      actor: ({ runtime }) => runtime.context,
    }),
  ],
});
const runtime = { context: { userId: "ann" }, threadId: "customer-7" };
await client.callTool("order", "refund", { order_id: "ORD-001", password: "p" }, { runtime });

const [intent, outcome] = await stores.audit.read({ tool: "refund" });
// #endregion
assert.deepEqual(
  [intent?.seq, intent?.kind, intent?.previous, intent?.data.args, intent?.data.actor],
  [1, "intent", "", { order_id: "ORD-001", password: "[redacted]" }, { userId: "ann" }],
);
assert.deepEqual([outcome?.data.outcome, outcome?.previous], ["ok", intent?.hash]);
assert.equal(outcome?.callId, intent?.callId);

// #region verify
const verdict = await stores.audit.verify(); // in memory that does not grow with the trail
if (!verdict.intact) throw new Error(verdict.message); // for example: entry 3 was changed: it does not fit its hash
const anchor = verdict.head; // { seq, hash }: keep it elsewhere, and give it to the next verify({ anchor })
// #endregion
assert.equal(anchor?.seq, 2);
assert.ok((await stores.audit.verify({ anchor })).intact);

{
  // a program that ends in the middle of a call
  const crashed = openSqlite({ path: data("audit.sqlite") });
  await crashed.audit.append({ kind: "intent", callId: "call-9", data: { server: "order", tool: "refund" } });
  await crashed.close();
}

// #region sweep
import { isProcessGone } from "@tenon/store";

// at the start of a program: what a crashed one on this machine left open ends as unknown at once
for (const { callId, data } of await stores.audit.sweep({ isGone: isProcessGone })) {
  console.log(`${data.server}/${data.tool} of ${callId} may or may not have run`);
}
// #endregion
assert.deepEqual(await stores.audit.unfinished(), []);
const [, unknown] = await stores.audit.read({ callId: "call-9" });
assert.equal(unknown?.data.outcome, "unknown");

const signal = AbortSignal.timeout(10_000);
const seen: number[] = [];
setTimeout(() => void client.callTool("order", "refund", { order_id: "ORD-002", password: "p" }, { runtime }), 20);
// #region read
// a page: by call, conversation, server, tool, time
const refunds = await stores.audit.read({ thread: "customer-7", tool: "refund", since: Date.now() - 86_400_000 });

// everything, as lines of JSON (or a table: format "csv")
for await (const line of stores.audit.export()) process.stdout.write(line);

// what is written from now on, by any process
for await (const record of stores.audit.tail({ signal })) {
  seen.push(record.seq);
  if (record.kind === "outcome") break;
}
// #endregion
assert.equal(refunds.length, 2);
assert.deepEqual(seen, [5, 6]);

await client.close();
await stores.close();
await orders.close();
await rm(folder, { recursive: true });
