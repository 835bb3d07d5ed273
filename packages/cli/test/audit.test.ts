import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@tenon/core";
import type { AuditRecord, Stores } from "@tenon/store";
import { openStores } from "@tenon/store/open";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite } from "@tenon/store/sqlite";
import Database from "better-sqlite3";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { main, tenon } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-cli-audit-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let serial = 0;

async function call(stores: Stores, tool: string, more: JsonObject = {}): Promise<void> {
  const callId = `call-${serial++}`;
  const data = { server: "order", tool, ...more };
  const { pass } = await stores.audit.append({ kind: "intent", callId, data: { ...data, actor: { userName: "Ann" } } });
  await stores.audit.append({ kind: "outcome", callId, pass, data: { ...data, outcome: "ok", ms: 7 } });
}

/** A data directory with a trail of six entries; the current directory of the command. */
async function place(): Promise<{ cwd: string; file: string }> {
  const cwd = mkdtempSync(join(folder, "cwd-"));
  const file = join(cwd, ".tenon/audit.sqlite");
  await using stores = openSqlite({ path: file });
  await call(stores, "query_order", { threadId: "t-1" });
  await call(stores, "process_refund", { threadId: "t-1" });
  await call(stores, "query_order", { threadId: "t-2" });
  return { cwd, file };
}

const lines = (text: string): AuditRecord[] =>
  text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

describe("tenon audit verify", () => {
  it("says that the trail is unbroken, what is in it, and an anchor that fits", async () => {
    const { cwd, file } = await place();
    const first = await tenon(["audit", "verify"], { cwd });
    expect(first).toMatchObject({ code: 0, stderr: "" });
    const [, anchor = ""] = /^unbroken: 6 entries \(3 calls\)\nanchor: (6:[\w-]{43})\n$/.exec(first.stdout) ?? [];
    for (const args of [
      ["--data", file],
      ["--data", ".tenon"],
      ["--anchor", anchor],
    ]) {
      expect(await tenon(["audit", "verify", ...args], { cwd })).toEqual(first);
    }
    const json = await tenon(["audit", "verify", "--json"], {
      cwd: folder,
      env: { TENON_DATA_DIR: join(cwd, ".tenon") },
    });
    expect(JSON.parse(json.stdout)).toMatchObject({
      intact: true,
      entries: 6,
      unfinished: 0,
      head: { seq: 6 },
      anchor,
    });
  });

  it("says where it is broken and what was done: exit code 1", async () => {
    const { cwd, file } = await place();
    const { stdout } = await tenon(["audit", "verify", "--json"], { cwd });
    const { seq, hash } = JSON.parse(stdout).head;
    const database = new Database(file);
    database.exec("update tenon_audit set data = replace(data, 'Ann', 'Bob') where seq = 3");
    const broken = await tenon(["audit", "verify"], { cwd });
    expect([broken.code, broken.stdout]).toEqual([1, ""]);
    expect(broken.stderr).toBe(
      [
        "tenon audit verify: the audit trail is broken at entry 3 (changed)",
        "  why: entry 3 was changed: it does not fit its hash",
        "  do:  the 2 entries before it are as they were written; keep the database as it is, and compare it with a backup or an earlier export",
        "",
      ].join("\n"),
    );
    const json = await tenon(["audit", "verify", "--json"], { cwd });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ intact: false, problem: "changed", seq: 3, entries: 2 });
    database.exec("delete from tenon_audit; delete from tenon_audit_head");
    database.close();
    expect((await tenon(["audit", "verify"], { cwd })).stdout).toBe(
      "empty: nothing was ever written, or all of it is gone\n",
    );
    const gone = await tenon(["audit", "verify", "--anchor", `${seq}:${hash}`], { cwd });
    expect([gone.code, gone.stderr.split("\n")[0]]).toEqual([
      1,
      "tenon audit verify: the audit trail is broken at entry 1 (cut)",
    ]);
  });

  it.each<[string, string[], string, string]>([
    ["a place without one", [], "there is no .tenon/audit.sqlite or .tenon/tenon.sqlite", "--data"],
    ["another file", ["--data", "other.db"], "there is no audit trail in other.db", "--data"],
    [
      "a file that is no database",
      ["--data", "text.txt"],
      "text.txt cannot be opened: file is not a database",
      "--data",
    ],
    ["no Postgres", ["--database", "postgres://x:secret@127.0.0.1:9/x"], "cannot be reached", "--database"],
  ])("makes nothing of %s, and says so in three lines", async (_, args, why, todo) => {
    const cwd = mkdtempSync(join(folder, "cwd-"));
    new Database(join(cwd, "other.db")).exec("create table t (a)").close();
    writeFileSync(join(cwd, "text.txt"), "x".repeat(5_000));
    mkdirSync(join(cwd, ".tenon"));
    const { code, stdout, stderr } = await tenon(["audit", "verify", ...args], { cwd });
    expect([code, stdout]).toEqual([1, ""]);
    const [first = "", second = "", third = "", ...rest] = stderr.split("\n");
    expect([first, rest]).toEqual(["tenon audit verify: the audit trail was not checked", [""]]);
    expect(second).toContain(why);
    expect(third).toContain(todo);
    expect(stderr).not.toContain("secret");
  });

  it.each<[string[], string]>([
    [["verify", "--anchor", "6"], "Expected number:hash"],
    [["tail", "-n", "many"], "whole number from 0 to 1000"],
    [["export", "--since", "yesterday"], "Expected a date such as 2026-01-31"],
    [["export", "--format", "xml"], "Allowed choices are jsonl, csv"],
    [["verify", "--database", "mysql://x"], "no address of Postgres"],
  ])("refuses %j: exit code 2", async (args, why) => {
    const { code, stderr } = await tenon(["audit", ...args], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain(why);
  });
});

describe("tenon audit tail", () => {
  it("finds the trail in the file that openStores makes, where it has none of its own", async () => {
    const cwd = mkdtempSync(join(folder, "cwd-"));
    {
      await using stores = await openStores({ directory: join(cwd, "kept"), url: "" });
      await call(stores, "query_order");
    }
    const { stdout } = await tenon(["audit", "tail", "--json", "--data", "kept"], { cwd });
    expect(lines(stdout).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  it("prints the last entries, a line each, of what is asked for", async () => {
    const { cwd, file } = await place();
    const { stdout } = await tenon(["audit", "tail", "-n", "2", "--tool", "query_order"], { cwd });
    expect(stdout).toMatch(
      /^5 {2}\d{4}-.+Z {2}intent {2}order\/query_order {2}call-\d+#1 {2}Ann\n6 {2}.+Z {2}outcome {2}order\/query_order {2}call-\d+#1 {2}ok {2}7 ms\n$/,
    );
    const json = await tenon(["audit", "tail", "--json", "--thread", "t-1"], { cwd });
    expect(lines(json.stdout).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    await using stores = openSqlite({ path: file });
    await call(stores, "\u001b[2J\nfake line");
    const clean = await tenon(["audit", "tail", "-n", "1"], { cwd });
    expect(clean.stdout).toContain("order/ fake line");
    expect(clean.stdout).not.toContain("\u001b");
    const approval = { decision: "approve", decidedBy: { userName: "Bo" } };
    await call(stores, "refund", { traceId: "0af7651916cd43dd8448eb211c80319c", approval });
    const traced = await tenon(["audit", "tail", "-n", "2"], { cwd });
    expect(traced.stdout.split("\n")[0]).toMatch(/ {2}approve by Bo {2}trace 0af7651916cd43dd8448eb211c80319c$/);
  });

  it.each(["SIGINT", "SIGTERM"] as const)("follows what other processes write, until %s", async (signal) => {
    const { cwd, file } = await place();
    const child = spawn(process.execPath, [main, "audit", "tail", "-f", "-n", "1", "--json"], { cwd });
    const ended = once(child, "close");
    let out = "";
    child.stdout.on("data", (part) => {
      out += part;
    });
    while (!out.includes("\n")) await once(child.stdout, "data");
    await using stores = openSqlite({ path: file });
    await call(stores, "send_sms");
    while (lines(out).length < 3) await once(child.stdout, "data");
    child.kill(signal);
    expect((await ended)[0]).toBe(0);
    expect(lines(out).map(({ seq }) => seq)).toEqual([6, 7, 8]);
  });
});

describe("tenon audit export", () => {
  it("prints the trail or a part of it, for programs and for people", async () => {
    const { cwd } = await place();
    const whole = await tenon(["audit", "export"], { cwd });
    expect(lines(whole.stdout).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
    const part = await tenon(
      ["audit", "export", "--since", "1h", "--until", "2999-01-01", "--tool", "process_refund"],
      { cwd },
    );
    expect(lines(part.stdout).map(({ seq }) => seq)).toEqual([3, 4]);
    expect((await tenon(["audit", "export", "--until", "1h"], { cwd })).stdout).toBe("");
    const csv = await tenon(["audit", "export", "--format", "csv", "--thread", "t-2"], { cwd });
    expect(csv.stdout.split("\r\n")).toHaveLength(4);
    expect(csv.stdout).toMatch(/^seq,at,kind,/);
  });

  it("ends well when its reader has read enough", async () => {
    const { cwd, file } = await place();
    {
      await using stores = openSqlite({ path: file });
      const note = "x".repeat(2_000);
      await Promise.all(Array.from({ length: 500 }, () => call(stores, "query_order", { note })));
    }
    const shell = `"${process.execPath}" "${main}" audit export; echo "exit $?" >&2`;
    const { stdout, stderr } = spawnSync("sh", ["-c", `{ ${shell}; } | head -n 1`], { cwd, encoding: "utf8" });
    expect(lines(stdout)).toHaveLength(1);
    expect(stderr).toBe("exit 0\n");
  });
});

const url = process.env.TENON_TEST_DATABASE_URL;
describe.skipIf(url === undefined)("tenon audit on Postgres (set TENON_TEST_DATABASE_URL)", () => {
  const schema = `tenon_cli_audit_${process.pid}_${Date.now()}`;
  afterAll(async () => {
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`drop schema if exists ${schema} cascade`);
    await client.end();
  });
  it("reads the trail of the database that the environment or a flag names", async () => {
    const env = { TENON_DATABASE_URL: url ?? "", TENON_DATABASE_SCHEMA: schema };
    const missing = await tenon(["audit", "verify"], { cwd: folder, env });
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain(`there is no audit trail in the schema ${schema} of that database`);
    {
      await using stores = openPostgres({ url: url ?? "", schema });
      await call(stores, "query_order");
    }
    expect((await tenon(["audit", "verify"], { cwd: folder, env })).stdout).toMatch(
      /^unbroken: 2 entries \(1 calls\)\n/,
    );
    const flags = ["--database", url ?? "", "--schema", schema];
    expect(lines((await tenon(["audit", "tail", "--json", ...flags], { cwd: folder })).stdout)).toHaveLength(2);
    expect(lines((await tenon(["audit", "export", ...flags], { cwd: folder })).stdout)).toHaveLength(2);
  });
});
