import { join } from "node:path";
import type { AuditRecord, AuditStore } from "@tenon/store";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite } from "@tenon/store/sqlite";
import { describe, expect, it } from "vitest";
import { dataDirectory, openChat, processesOn, refunds, talk, until } from "./desk.ts";
import { addOrders, DESK_URL, quickRefunds, schemaOf, slowRefunds } from "./desk-database.ts";

/** The trail of a data directory, opened for as long as it is looked at. */
async function look<T>(data: string, work: (audit: AuditStore) => Promise<T>): Promise<T> {
  await using stores =
    DESK_URL === undefined
      ? openSqlite({ path: join(data, "audit.sqlite") })
      : openPostgres({ url: DESK_URL, schema: schemaOf(data) });
  return await work(stores.audit); // before they are closed
}

/** Entries of calls to a tool; the trail is unbroken. */
const entriesOf = (data: string, tool: string): Promise<readonly AuditRecord[]> =>
  look(data, async (audit) => {
    expect((await audit.verify()).intact).toBe(true);
    return audit.read({ tool, limit: 1_000 });
  });

const ends = (entries: readonly AuditRecord[]): unknown[] =>
  entries.map(({ kind, pass, data }) => [kind, pass, data.outcome]);

describe("the audit trail of the desk", () => {
  it("has an entry before and after each call to a server, with who asked and what for, and none of local tools", async () => {
    const data = dataDirectory();
    await talk(data, [
      "查询订单ORD-001",
      "批量退款 ORD-001、ORD-004，质量问题",
      "给 13812345678 发短信，内容：ORD-001 已经退款",
      "quit",
    ]);
    const [looked] = await entriesOf(data, "query_order");
    expect(looked).toMatchObject({
      kind: "intent",
      data: {
        server: "order",
        args: { order_id: "ORD-001", caller_id: "user_zhangsan(张三)" },
        actor: { userId: "user_zhangsan", userName: "张三" },
        threadId: "main",
        idempotencyKey: expect.any(String),
      },
    });
    const batch = await entriesOf(data, "batch_refund");
    expect(ends(batch)).toEqual([
      ["intent", 1, undefined],
      ["outcome", 1, "ok"],
    ]);
    // the orders it is about can be read
    const ids = JSON.stringify((batch[0]?.data.args as { order_ids?: unknown } | undefined)?.order_ids); // an intent has arguments
    for (const id of ["ORD-001", "ORD-004"]) expect(ids).toContain(id);
    const sent = await entriesOf(data, "send_sms");
    expect(ends(sent)).toContainEqual(["outcome", 1, "ok"]);
    expect(JSON.stringify(sent)).not.toContain("13812345678"); // it is in the outbox
    expect(await entriesOf(data, "validate_phone")).toEqual([]);
  });

  it("has one pass that is suspended and one that ends where the server asks in the middle", async () => {
    const data = dataDirectory();
    await talk(data, ["ORD-003 屏幕坏了，请退款", "approve", "1", "quit"]);
    const entries = await entriesOf(data, "process_refund");
    expect(ends(entries)).toEqual([
      ["intent", 1, undefined],
      ["outcome", 1, "suspended"],
      ["intent", 2, undefined],
      ["outcome", 2, "ok"],
    ]);
    expect(new Set(entries.map(({ callId }) => callId)).size).toBe(1);
  });

  it("says unknown of what a killed desk left open, and how the resumed call ended", async () => {
    const data = dataDirectory();
    const many = Array.from({ length: 12 }, (_, i) => `ORD-1${String(i).padStart(2, "0")}`);
    await talk(data, ["quit"]); // makes the tables
    addOrders(data, many, 1_000);
    slowRefunds(data);
    const first = openChat(data).say(`${many.join("、")} 由于产品质量问题，请退款`);
    await until(() => refunds(data).length > 2, "the batch to be under way");
    await first.kill("SIGKILL").ended;
    await until(() => processesOn(data).length === 0, "the servers to end");
    quickRefunds(data);
    expect(ends(await entriesOf(data, "batch_refund"))).toEqual([["intent", 1, undefined]]);
    expect(await look(data, (audit) => audit.unfinished())).toHaveLength(1);

    // the next start goes on with the run: the same call, and what came of the first pass is not known
    const second = openChat(data).say("quit");
    expect((await second.hangUp().ended).code).toBe(0);
    const entries = await entriesOf(data, "batch_refund");
    expect(ends(entries)).toEqual([
      ["intent", 1, undefined],
      ["outcome", 1, "unknown"],
      ["intent", 2, undefined],
      ["outcome", 2, "ok"],
    ]);
    expect(entries[1]?.data.why).toBe("the process that made the call is gone");
    expect(new Set(entries.map(({ callId }) => callId)).size).toBe(1);
    expect(refunds(data)).toHaveLength(many.length);
    expect(await look(data, (audit) => audit.unfinished())).toEqual([]);
  });
});
