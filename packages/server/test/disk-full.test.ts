import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "@tenon/store/sqlite";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { smallDisk } from "../../../test/full-disk.ts";
import { createServer, type TenonServer } from "../src/index.ts";
import { call, type Reply, said } from "./ask.ts";
import { begin, follow, request } from "./tasks.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-server-disk-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let disk: Awaited<ReturnType<typeof smallDisk>>;
let server: TenonServer;
let effects: string[];
let files = 0;

beforeEach(async () => {
  effects = [];
  const small = await smallDisk(() => openSqlite({ path: join(folder, `${files++}.db`) }));
  disk = small;
  const made = createServer({ name: "full", version: "1.0.0", store: small.opened, logSink: () => undefined });
  const input = z.object({ text: z.string() });
  made.tool("keyed", { input, idempotent: true }, ({ text }, ctx) =>
    ctx.step("book", () => {
      effects.push("booked");
      if (text === "fill") disk.fill();
      return text === "fill" ? "x".repeat(100_000) : text;
    }),
  );
  made.tool("long", { input, task: "required" }, ({ text }, ctx) =>
    ctx.step("book", () => {
      effects.push("booked");
      return text.length;
    }),
  );
  server = made;
});
afterEach(async () => {
  disk.heal();
  await server.close();
});

/** Calls until the last free page is used up, and a call is refused that cannot even begin. */
async function callUntilFull(): Promise<Reply & { again(): Promise<Reply> }> {
  for (let i = 0; i < 2_000; i++) {
    const done = effects.length;
    const send = (): Promise<Reply> => call(server, "keyed", { text: "little" }, { idempotencyKey: `key-${i}` });
    const reply = await send();
    if (reply.error?.data?.reason !== undefined) {
      expect(effects).toHaveLength(done);
      return { ...reply, again: send };
    }
    // where the disk was full after the effect, nobody is told that there was none
    if (reply.error) expect(reply.error.message).toMatch(/^keyed failed \(reference \w+\)$/);
    expect(effects).toHaveLength(done + 1);
  }
  throw new Error("it never was full");
}

describe("a server whose disk is full", () => {
  it("refuses a call before its effect and says that it did nothing; later the same call works", async () => {
    disk.fill();
    const { error, again } = await callUntilFull();
    expect(error).toMatchObject({ code: -32603, data: { reason: "disk_full" } });
    expect(error?.message).toContain("this request did nothing");
    expect(error?.message).not.toContain(folder);
    const done = effects.length;
    disk.heal();
    expect(said(await again())).toContain("little");
    expect(effects).toHaveLength(done + 1);
  });
  it("does not say so when the disk was full after the effect", async () => {
    const reply = await call(server, "keyed", { text: "fill" }, { idempotencyKey: "k" });
    expect(effects).toEqual(["booked"]);
    expect(JSON.stringify(reply)).toMatch(/failed \(reference \w+\)/);
    expect(JSON.stringify(reply)).not.toContain("did nothing");
  });
  it("takes no task that it cannot keep", async () => {
    disk.fill();
    const args = { text: "x".repeat(100_000) };
    const { error } = await request(server, "tools/call", { name: "long", arguments: args });
    expect(error).toMatchObject({ code: -32603, data: { reason: "disk_full" } });
    disk.heal();
    const { taskId } = await begin(server, "long", args);
    expect((await follow(server, taskId)).status).toBe("completed");
    expect(effects).toEqual(["booked"]);
  });
  it("says of a store that it cannot write to at all that it cannot", async () => {
    disk.protect();
    const { error } = await call(server, "keyed", { text: "a" }, { idempotencyKey: "k" });
    expect(error).toMatchObject({ code: -32603, data: { reason: "read_only" } });
    expect(effects).toEqual([]);
  });
});
