import { createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { META } from "@tenon/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { dataDirectory, ENTRY, Program, refundRows, refunds } from "./desk.ts";
import { addOrders } from "./desk-database.ts";
import { tokenFor } from "./token-for.ts";

/** Two server processes on one order book, and a client of both. */
async function twoServers(data: string) {
  const urls = await Promise.all(
    ["one", "two"].map(async () => {
      const server = new Program([process.execPath, ENTRY, "serve", "order", "--port", "0", "--data", data]);
      const line = await server.sees(/http:\S+\/mcp\n/);
      return line.slice(line.indexOf("http")).trim();
    }),
  );
  const [one = "", two = ""] = urls;
  const auth = bearer(await tokenFor(data, "order"));
  const client = createClient({ servers: { one: { url: one, auth }, two: { url: two, auth } } });
  onTestFinished(() => client.close());
  return client;
}

describe("two processes on one order book", () => {
  it("refund an order once, whoever asks at the same moment", async () => {
    const data = dataDirectory();
    const client = await twoServers(data);
    const ids = Array.from({ length: 20 }, (_, i) => `ORD-${500 + i}`);
    addOrders(data, ids, 1234);

    const outcomes = await Promise.all(
      ids.flatMap((order_id) =>
        ["one", "two", "one", "two"].map((server) =>
          client.callTool(server, "process_refund", { order_id, reason: "r" }),
        ),
      ),
    );
    expect(outcomes.filter((outcome) => !outcome.isError)).toHaveLength(ids.length);
    expect(refunds(data).sort()).toEqual(ids);
    expect(new Set(refundRows(data).map((row) => row.amount))).toEqual(new Set([1234]));
  });

  it("give the first outcome again to the same call, wherever it is repeated", async () => {
    const data = dataDirectory();
    const client = await twoServers(data);
    const args = { order_id: "ORD-001", reason: "坏了" };
    const same = { meta: { [META.idempotencyKey]: "call-1" } };
    const outcomes = await Promise.all(
      ["one", "two", "one"].map((server) => client.callTool(server, "process_refund", args, same)),
    );
    for (const outcome of outcomes) {
      expect(outcome.isError).toBe(false);
      expect(outcome.structured).toMatchObject({ status: "refunded", orderId: "ORD-001", amount: "299.00" });
    }
    const other = await client.callTool("two", "process_refund", args, { meta: { [META.idempotencyKey]: "call-2" } });
    expect(other.isError).toBe(true);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });

  it("start on a fresh directory at the same moment, and the orders are there once", async () => {
    const data = dataDirectory();
    const client = await twoServers(data);
    for (const server of ["one", "two"]) {
      const outcome = await client.callTool(server, "query_order", { order_id: "ord 1" });
      expect(outcome.structured).toMatchObject({ orderId: "ORD-001", amount: "299.00", refunded: false });
    }
  });
});
