import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { META } from "@tenon/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { tokenFor } from "../../test/token-for.ts";
import { openSqlite } from "../database/sqlite.ts";
import { openDeskServer } from "./serve.ts";

/** An SMS gateway that answers with whatever `status` is, and remembers what it took. */
async function gateway() {
  const state = { status: 200, taken: [] as unknown[], keys: [] as unknown[], url: "" };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (state.status === 200) {
      state.taken.push(JSON.parse(body));
      state.keys.push(request.headers["idempotency-key"]);
    }
    response.writeHead(state.status, { location: "/elsewhere" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sms`; // a TCP server that listens
  return state;
}

async function notificationServer(smsWebhook?: string) {
  const dataDirectory = mkdtempSync(join(tmpdir(), "tenon-outbox-"));
  const log: string[] = [];
  const server = await openDeskServer("notification", {
    place: { directory: dataDirectory },
    lang: "en",
    smsWebhook,
    log: (line) => void log.push(line),
  });
  const { url } = await server.listen({ port: 0 });
  const client = createClient({
    servers: { notification: { url, auth: bearer(await tokenFor(dataDirectory, "notification")) } },
  });
  const database = openSqlite(join(dataDirectory, "orders.sqlite"));
  onTestFinished(async () => {
    await client.close();
    await server.close();
    database.close();
    rmSync(dataDirectory, { recursive: true, force: true });
  });
  const send = (args: Record<string, unknown>, key?: string) =>
    client.callTool(
      "notification",
      "send_sms",
      args,
      key === undefined ? {} : { meta: { [META.idempotencyKey]: key } },
    );
  const rows = () => database.prepare("select phone, content, status from sms_outbox order by id").all();
  return { client, send, rows, log };
}

const message = { phone: "18812345678", content: "refunded" };

describe("a message", () => {
  it("is kept as failed while the gateway is down, and sent once when the same call comes again", async () => {
    const web = await gateway();
    const { send, rows } = await notificationServer(web.url);
    for (web.status of [500, 302, 404]) {
      const failed = await send(message, "k");
      expect(failed.isError).toBe(true);
      expect(JSON.stringify(failed.content)).toContain("kept in the outbox (number 1)");
      expect(rows()).toEqual([{ ...message, status: "failed" }]);
    }
    web.status = 200;
    expect((await send(message, "k")).structured).toMatchObject({ status: "sent", id: 1 });
    expect((await send(message, "k")).structured).toMatchObject({ status: "sent", id: 1 });
    expect(rows()).toEqual([{ ...message, status: "sent" }]);
    expect(web.taken).toEqual([{ id: 1, ...message }]);
    expect(web.keys).toEqual(["sms-1"]);
  });

  it("is kept when there is no gateway at all", async () => {
    const { send, rows } = await notificationServer("http://127.0.0.1:1/sms");
    expect((await send(message, "k")).isError).toBe(true);
    expect(rows()).toEqual([{ ...message, status: "failed" }]);
  });

  it("said twice by two calls is two messages", async () => {
    const { send, rows } = await notificationServer();
    await send(message, "a");
    await send(message, "b");
    await send(message);
    expect(rows()).toHaveLength(3);
  });

  it("goes to the log without a gateway, in one line without control characters", async () => {
    const { send, log } = await notificationServer();
    await send({ phone: " 18812345678 ", content: "a\u001b[31mb" });
    expect(log.filter((line) => line.startsWith("SMS"))).toEqual(["SMS #1 → 18812345678: ab"]);
  });

  it("to a number that is none, or without content, is not even stored", async () => {
    const { send, rows } = await notificationServer();
    for (const phone of ["28812345678", "1881234567", "188123456789", "", "1881234567a", "+8618812345678"]) {
      const outcome = await send({ ...message, phone });
      expect(outcome.isError).toBe(true);
    }
    for (const content of ["", "x".repeat(501)]) {
      expect((await send({ ...message, content }).catch(() => ({ isError: true }))).isError).toBe(true);
    }
    expect(rows()).toEqual([]);
  });
});

describe("the policy and the template", () => {
  it("come in the language of the request", async () => {
    const { client } = await notificationServer();
    const [policy] = await client.readResources("notification", ["company://policies/return"]);
    expect(policy?.asString()).toContain("within 7 days of delivery");
    const [reply] = await client.getPrompt("notification", "refund_response", {
      order_id: "ORD-001",
      amount: "299.00",
    });
    expect(JSON.stringify(reply)).toContain("299.00 CNY will be returned the way you paid within 3 working days");
  });
});
