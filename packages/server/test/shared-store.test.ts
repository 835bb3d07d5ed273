import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "@tenon/store/sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { createServer, type TenonServer } from "../src/index.ts";
import { answering, ask, call, said } from "./ask.ts";

// One database and one ring of keys for everything that runs on a machine is what an environment gives: servers that share them
// must not answer for each other, or a refund that nobody made is told as made.

const folder = mkdtempSync(join(tmpdir(), "tenon-shared-"));
const path = join(folder, "state.db");
const open: TenonServer[] = [];
afterAll(async () => {
  await Promise.all(open.map((server) => server.close()));
  rmSync(folder, { recursive: true, force: true });
});

const key = (byte: string): string => Buffer.alloc(32, byte).toString("base64url");
const done: string[] = [];

function serverOf(name: string, keys: string[]): TenonServer {
  const store = openSqlite({ path });
  const server = createServer({ name, version: "1", stateKeys: keys, store, replicas: true, logSink: () => undefined });
  const record = (what: string) => (): string => {
    done.push(`${name} ${what}`);
    return `${name} did it`;
  };
  server.tool("refund", {}, async (_, ctx) => {
    await ctx.elicit("Sure?", ["yes"]);
    return ctx.step("refund", record("refund"));
  });
  server.tool("pay", { idempotent: true }, (_, ctx) => ctx.step("pay", record("pay")));
  open.push(server);
  return server;
}

describe("servers that share a store and their keys", () => {
  it("do not carry out what the other one asked about, and do not spoil the answer for it", async () => {
    done.length = 0;
    const shop = serverOf("shop", [key("1")]);
    const bank = serverOf("bank", [key("1")]);
    const yes = { "Sure?": { action: "accept", content: { value: "yes" } } } as const;
    const retry = { name: "refund", ...answering(await call(shop, "refund"), yes) };
    expect((await ask(bank, "tools/call", retry)).error).toMatchObject({ code: -32602, data: { reason: "foreign" } });
    expect(done).toEqual([]);
    // a replica with keys that were changed meanwhile carries it out, and the first one knows
    const replica = serverOf("shop", [key("2"), key("1")]);
    expect(said(await ask(replica, "tools/call", retry))).toBe("shop did it");
    expect(said(await ask(shop, "tools/call", retry))).toBe("shop did it");
    expect(done).toEqual(["shop refund"]);
  });
  it("do not take the other one's outcome for an idempotency key of their own", async () => {
    done.length = 0;
    const [shop, replica, bank] = [
      serverOf("shop", [key("1")]),
      serverOf("shop", [key("1")]),
      serverOf("bank", [key("1")]),
    ];
    const pay = async (server: TenonServer, args: object): Promise<string> =>
      said(await call(server, "pay", args, { idempotencyKey: "k" }));
    expect(await Promise.all([shop, replica, shop, replica].map((one) => pay(one, { a: 1, b: 2 })))).toEqual(
      Array(4).fill("shop did it"),
    );
    expect(await pay(replica, { b: 2, a: 1 })).toBe("shop did it"); // the order of arguments is none
    expect(await pay(bank, { a: 1, b: 2 })).toBe("bank did it");
    expect(done).toEqual(["shop pay", "bank pay"]);
  });
});
