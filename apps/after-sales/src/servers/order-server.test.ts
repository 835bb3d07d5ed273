import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { META } from "@tenon/core";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { tokenFor } from "../../test/token-for.ts";
import { openDeskServer } from "./serve.ts";

/** A real server on a real file, and a client of it. */
async function orderServer() {
  const dataDirectory = mkdtempSync(join(tmpdir(), "tenon-orders-"));
  const server = await openDeskServer("order", {
    place: { directory: dataDirectory },
    lang: "en",
    log: () => undefined,
  });
  const { url } = await server.listen({ port: 0 });
  const token = await tokenFor(dataDirectory, "order");
  const client = createClient({ servers: { order: { url, auth: bearer(token) } } });
  const database = new Database(join(dataDirectory, "orders.sqlite"), { timeout: 5_000 });
  onTestFinished(async () => {
    await client.close();
    await server.close();
    database.close();
    rmSync(dataDirectory, { recursive: true, force: true });
  });
  const batch = (order_ids: unknown, options?: { meta?: Record<string, unknown>; signal?: AbortSignal }) =>
    client.callTool("order", "batch_refund", { order_ids, reason: "r" }, options);
  const refunded = () =>
    database
      .prepare<[], { order_id: string; amount: number }>("select order_id, amount from refunds order by order_id")
      .all();
  return { client, database, batch, refunded, url, token };
}

describe("a batch", () => {
  it("takes orders of 500.00 and refuses those of 2499.00, in delivery, unknown or refunded", async () => {
    const { batch, refunded } = await orderServer();
    const { structured, isError } = await batch(["ORD-001", "ORD-002", "ORD-003", "ORD-004", "ORD-999"]);
    expect(isError).toBe(false);
    expect(structured).toMatchObject({
      total: 5,
      refunded: [
        { orderId: "ORD-001", amount: "299.00" },
        { orderId: "ORD-002", amount: "500.00" },
      ],
      skipped: [
        { orderId: "ORD-003", reason: "too_large" },
        { orderId: "ORD-004", reason: "not_delivered" },
        { orderId: "ORD-999", reason: "unknown" },
      ],
      amount: "799.00",
    });
    expect(refunded()).toEqual([
      { order_id: "ORD-001", amount: 29_900 },
      { order_id: "ORD-002", amount: 50_000 },
    ]);
    expect((await batch("ORD-001")).structured).toMatchObject({ skipped: [{ reason: "already" }], amount: "0.00" });
  });

  it("reads a list however it is written, each order once", async () => {
    const { batch } = await orderServer();
    const { structured } = await batch(" ord-1，ORD-001、ORD2; ORD_001\nORD-2 ");
    expect(structured).toMatchObject({ total: 2, amount: "799.00", skipped: [] });
  });

  it("of nothing, or of more than 100 orders by a client without tasks, is refused before anything is refunded", async () => {
    const { batch, database, refunded, url, token } = await orderServer();
    const ids = Array.from({ length: 101 }, (_, i) => `ORD-${1000 + i}`);
    for (const id of ids) database.prepare("insert into orders values (?, 'delivered', 1)").run(id);
    for (const none of ["", " , ", []]) expect((await batch(none)).isError).toBe(true);
    const official = new Client({ name: "official", version: "1.0.0" });
    onTestFinished(() => official.close());
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await official.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
    for (const order_ids of [ids, ids.join(",")]) {
      const answer = await official.callTool({ name: "batch_refund", arguments: { order_ids, reason: "r" } });
      expect(answer.isError).toBe(true);
    }
    expect(refunded()).toEqual([]);
    expect((await batch(ids.slice(1))).structured).toMatchObject({ total: 100, amount: "1.00" });
    expect(refunded()).toHaveLength(100);
  });

  it("of more than 100 orders is a task to a client that knows them, and more than 10,000 are refused", async () => {
    const { batch, client, database, refunded } = await orderServer();
    const ids = Array.from({ length: 101 }, (_, i) => `ORD-${1000 + i}`);
    for (const id of ids) database.prepare("insert into orders values (?, 'delivered', 1)").run(id);
    const began = await client.tasks.start("order", "batch_refund", { order_ids: ids.slice(1), reason: "r" });
    expect(began.id).toBeUndefined(); // answered at once
    const { structured } = await batch([...ids, "ORD-004"]);
    expect(structured).toMatchObject({ total: 102, amount: "0.01", refunded: [{ orderId: "ORD-1000" }] });
    expect(refunded()).toHaveLength(101);
    const many = Array.from({ length: 10_001 }, (_, i) => `ORD-${20_000 + i}`);
    expect((await batch(many.join(","))).isError).toBe(true);
  });

  it("said again with the same key has the same result", async () => {
    const { batch, refunded } = await orderServer();
    const same = { meta: { [META.idempotencyKey]: "k" } };
    const first = await batch(["ORD-001", "ORD-004"], same);
    expect((await batch(["ORD-001", "ORD-004"], same)).structured).toEqual(first.structured);
    expect(refunded()).toHaveLength(1);
  });

  it("stops between two orders when it is cancelled, and keeps what it did", async () => {
    const { client, database, refunded } = await orderServer();
    const ids = Array.from({ length: 100 }, (_, i) => `ORD-${1000 + i}`);
    for (const id of ids) database.prepare("insert into orders values (?, 'delivered', 1)").run(id);
    database.exec(`create trigger slow after insert on refunds begin
      select count(*) from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) select i from n);
    end`);
    const stop = new AbortController();
    const running = client.callTool(
      "order",
      "batch_refund",
      { order_ids: ids, reason: "r" },
      { signal: stop.signal, onProgress: ({ progress }) => void (progress >= 2 && stop.abort()) },
    );
    await expect(running).rejects.toThrow();
    let before = -1;
    while (before !== refunded().length) {
      before = refunded().length;
      await client.callTool("order", "query_order", { order_id: "ORD-001" }); // a turn of the server
    }
    expect(before).toBeGreaterThanOrEqual(2);
    expect(before).toBeLessThan(100);
  });
});

describe("one refund", () => {
  it("below 500.00 needs no confirmation; from 500.00 on, a client that cannot ask gets none", async () => {
    const { client, refunded } = await orderServer();
    const small = await client.callTool("order", "process_refund", { order_id: "ORD-001", reason: "r" });
    expect(small.structured).toMatchObject({ status: "refunded", amount: "299.00" });
    const large = client.callTool("order", "process_refund", { order_id: "ORD-002", reason: "r" });
    await expect(
      large.then((outcome) => (outcome.isError ? Promise.reject(new Error("refused")) : outcome)),
    ).rejects.toThrow();
    expect(refunded()).toEqual([{ order_id: "ORD-001", amount: 29_900 }]);
  });

  it("refuses arguments that do not fit", async () => {
    const { client, refunded } = await orderServer();
    for (const args of [
      {},
      { order_id: "", reason: "r" },
      { order_id: "ORD-001", reason: "" },
      { order_id: 1, reason: "r" },
      { order_id: "ORD-001", reason: "r".repeat(501) },
    ]) {
      const outcome = await client.callTool("order", "process_refund", args).catch(() => ({ isError: true }));
      expect(outcome.isError).toBe(true);
    }
    expect(refunded()).toEqual([]);
  });
});

describe("an order as a resource", () => {
  it("tells amount, status and the time of the refund", async () => {
    const { client } = await orderServer();
    const read = async () =>
      JSON.parse((await client.readResources("order", ["order://ORD-001"]))[0]?.asString() ?? "");
    expect(await read()).toMatchObject({ orderId: "ORD-001", amount: "299.00", refundedAt: null });
    await client.callTool("order", "process_refund", { order_id: "ORD-001", reason: "r" });
    expect((await read()).refundedAt).toMatch(/^\d{4}-\d\d-\d\dT/);
    await expect(client.readResources("order", ["order://ORD-999"])).rejects.toThrow();
  });
});
