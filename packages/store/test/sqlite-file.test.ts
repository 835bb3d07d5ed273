import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openSqlite, openSqliteFile, type SqliteStep } from "../src/sqlite.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-file-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const first: SqliteStep = { name: "one", statements: ["create table t (a integer)", "insert into t values (1)"] };
const second: SqliteStep = { name: "two", statements: ["alter table t add column b integer default 7"] };

describe("a SQLite file of one's own", () => {
  it("is made with its folder, for its owner only", () => {
    const path = join(folder, "deep/er/data.sqlite");
    openSqliteFile(path).close();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "deep")).mode & 0o777).toBe(0o700);
  });
  it("has every step of its history taken once", () => {
    const path = join(folder, "history.sqlite");
    for (const history of [[first], [first], [first, second], [first, second]]) {
      openSqliteFile(path, { history }).close();
    }
    const database = openSqliteFile(path, { history: [first, second] });
    expect(database.prepare("select * from t").all()).toEqual([{ a: 1, b: 7 }]);
    database.close();
  });
  it("is left as it was by a step that fails", () => {
    const path = join(folder, "broken.sqlite");
    const broken: SqliteStep = {
      name: "two",
      statements: ["insert into t values (2)", "insert into nowhere values (1)"],
    };
    expect(() => openSqliteFile(path, { history: [first, broken] })).toThrow("no such table: nowhere");
    const database = openSqliteFile(path, { history: [first, second] });
    expect(database.prepare("select a from t").pluck().all()).toEqual([1]);
    database.close();
  });
  it("may hold the stores beside tables of its own", async () => {
    const path = join(folder, "shared.sqlite");
    const database = openSqliteFile(path, { history: [first] });
    database.close();
    await using stores = openSqlite({ path });
    expect(await stores.leases.acquire("k", "me", 1_000)).toMatchObject({ state: "yours" });
    const again = openSqliteFile(path, { history: [first, second] });
    expect(again.prepare("select a from t").pluck().all()).toEqual([1]);
    again.close();
  });
  it("says why a write failed where SQLite took the transaction back by itself, as on a full disk", async () => {
    const path = join(folder, "full.sqlite");
    await using stores = openSqlite({ path });
    const database = openSqliteFile(path);
    database.exec(
      "create trigger full before insert on tenon_leases begin select raise(rollback, 'database or disk is full'); end",
    );
    await expect(stores.leases.acquire("k", "me", 1_000)).rejects.toThrow("database or disk is full");
    database.exec("drop trigger full");
    database.close();
    expect(await stores.leases.acquire("k", "me", 1_000)).toMatchObject({ state: "yours" });
  });
});
