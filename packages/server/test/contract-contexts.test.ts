import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@tenon/core";
import { type ContextStore, openMemory, type Stores } from "@tenon/store";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite } from "@tenon/store/sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { onPostgres } from "../../store/test/postgres.ts";
import type { Caller, LogEntry, TenonServer } from "../src/index.ts";
import { connect } from "../src/testing/index.ts";
import { CONTEXT, desk } from "./contract-server.ts";
import { modern, overFetch } from "./raw-requests.ts";

const EXTENSION = "dev.tenon/context";
const folder = mkdtempSync(join(tmpdir(), "tenon-contract-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const caller = (subject: string, more: Partial<Caller> = {}): Caller => ({ subject, scopes: [], claims: {}, ...more });
const contextOf = (user_id: string, session_id: string) => ({ user_id, session_id });

/** Asks for the last context of a session, as somebody. */
async function last(server: TenonServer, session_id: unknown, as?: Caller): Promise<Record<string, unknown>> {
  const { messages } = await overFetch(server, modern("contexts/get", { session_id }), as && { caller: as });
  return messages[0] as Record<string, unknown>;
}
async function call(server: TenonServer, context: JsonObject, as?: Caller): Promise<void> {
  await using client = await connect(server, as ? { caller: as } : {});
  await client.callTool("who", {}, { meta: { [EXTENSION]: context } });
}
const unknown = { error: { code: -32602, data: { reason: "unknown_context" } } };

/** What holds wherever contexts are kept. */
function owners(kind: string, open: () => Stores): void {
  describe(`the last context of a session, in ${kind}`, () => {
    it("is told to whoever sent it, by every replica, and to nobody else", async () => {
      await using store = open();
      await using first = desk({ store });
      await using second = desk({ store });
      const alice = caller("alice", { clientId: "desk", issuer: "https://a.example" });
      await call(first, contextOf("alice", "shared"), alice);
      await call(first, contextOf("bob", "shared"), caller("bob"));
      expect(await last(first, "shared", alice)).toMatchObject({ result: { context: contextOf("alice", "shared") } });
      expect(await last(second, "shared", alice)).toMatchObject({ result: { context: contextOf("alice", "shared") } });
      expect(await last(second, "shared", caller("bob"))).toMatchObject({ result: { context: { user_id: "bob" } } });
      for (const stranger of [
        undefined,
        caller("carol"),
        { ...alice, issuer: "https://b.example" },
        { ...alice, clientId: "another" },
      ]) {
        expect(await last(second, "shared", stranger)).toMatchObject(unknown);
      }
      for (const session of ["never", "", "x".repeat(2_000), 7, undefined, null]) {
        expect(await last(second, session, alice)).toMatchObject(unknown);
      }
    });
    it("is the newest one, and over when its time is", async () => {
      await using store = open();
      await using server = desk({ store, contract: { schema: CONTEXT, contextTtlMs: 400 } });
      const context = { ...contextOf("alice", "short"), department: "sales" };
      await call(server, contextOf("alice", "short"));
      await call(server, context);
      expect(await last(server, "short")).toMatchObject({ result: { context } });
      await expect.poll(() => last(server, "short"), { timeout: 3_000 }).toMatchObject(unknown);
    });
  });
}

owners("memory", openMemory);
owners("SQLite", () => openSqlite({ path: join(folder, "contexts.db") }));
onPostgres("server contexts", "test", (url, schema) => owners("Postgres", () => openPostgres({ url, schema })));

describe("keeping the last context", () => {
  /** Stores whose contexts count what is written, or refuse to. */
  function watched(put?: ContextStore["put"]) {
    const stores = openMemory();
    const writes: JsonObject[] = [];
    const contexts: ContextStore = {
      ...stores.contexts,
      async put(key, context, ttlMs) {
        await put?.(key, context, ttlMs);
        writes.push(context);
        await stores.contexts.put(key, context, ttlMs);
      },
    };
    return { store: { ...stores, contexts }, writes };
  }

  it("writes once for many calls with the same context, and no more than once a second for others", async () => {
    const { store, writes } = watched();
    await using server = desk({ store });
    await using client = await connect(server);
    for (let i = 0; i < 20; i++) {
      await client.callTool("who", {}, { meta: { [EXTENSION]: contextOf("alice", "same") } });
      await client.callTool("who", {}, { meta: { [EXTENSION]: { ...contextOf("alice", "traced"), trace: i } } });
    }
    expect(writes.filter(({ session_id }) => session_id === "same")).toHaveLength(1);
    expect(writes.filter(({ session_id }) => session_id === "traced")).toHaveLength(1);
    // whoever asks gets the newest, written or not
    expect(await last(server, "traced")).toMatchObject({ result: { context: { trace: 19 } } });
    expect(writes.filter(({ session_id }) => session_id === "traced")).toHaveLength(2);
  });
  it("writes what is left when the server closes", async () => {
    const { store, writes } = watched();
    const server = desk({ store });
    await call(server, { ...contextOf("alice", "closing"), trace: 1 });
    await call(server, { ...contextOf("alice", "closing"), trace: 2 });
    await server.close();
    expect(writes.at(-1)).toMatchObject({ trace: 2 });
  });
  it("does not fail a call, and says so once in the log", async () => {
    const lines: LogEntry[] = [];
    const { store } = watched(() => Promise.reject(new Error("no disk")));
    await using server = desk({ store, logSink: (line) => lines.push(line) });
    await using client = await connect(server);
    for (const session of ["a", "b", "c"]) {
      const { isError } = await client.callTool("who", {}, { meta: { [EXTENSION]: contextOf("alice", session) } });
      expect(isError).toBe(false);
    }
    expect(lines.filter(({ message }) => message.includes("could not be kept"))).toHaveLength(1);
  });
});
