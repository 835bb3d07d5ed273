import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openMemory, type Stores } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { leaseSuite, takeOver } from "./lease-suite.ts";
import { onPostgres } from "./postgres.ts";
import { race, start } from "./spawn.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-leases-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const PROCESSES = 3;

/** What must hold between processes, on a database that was never opened before. */
function betweenProcesses(kind: string, where: string, schema: string, open: () => Stores): void {
  describe(`leases in ${kind}, between processes`, () => {
    it("let one in at a time, with fences that only grow", async () => {
      const log = join(folder, `${kind}.log`);
      writeFileSync(log, "");
      await race(PROCESSES, "./taker.ts", kind, where, schema, log);
      const lines = readFileSync(log, "utf8").trim().split("\n");
      const turns = lines.map((line) => line.split(" ").map(Number));
      expect(turns.map(([before]) => before)).toEqual(Array.from({ length: PROCESSES * 15 }, (_, i) => i));
      const fences = turns.map(([, fence = 0]) => fence);
      expect(fences.every((fence, i) => i === 0 || fence > (fences[i - 1] ?? fence))).toBe(true);
      expect(new Set(turns.map(([, , pid]) => pid)).size).toBe(PROCESSES);
    }, 60_000);
    it("outlive a killed process until their time is up, and not longer", async () => {
      const ttlMs = 3_000;
      const child = await start("./taker.ts", kind, where, schema, String(ttlMs), "die");
      const ended = once(child, "close");
      if (child.stdout) expect(String((await once(child.stdout, "data"))[0]).trim()).toBe("yours");
      child.kill("SIGKILL");
      await ended;
      await using stores = open();
      const found = await stores.leases.acquire("dies", "heir", 60_000);
      // on a machine that stood still in between the time may be up already
      if (found.state === "taken") expect(found.lease.holder).toBe(`process ${child.pid}`);
      const lease = found.state === "yours" ? found.lease : await takeOver(stores.leases, "dies", "heir");
      expect(lease.holder).toBe("heir");
    }, 60_000);
  });
}

leaseSuite("memory", openMemory);
leaseSuite("SQLite", () => openSqlite({ path: join(folder, "suite.db") }));
leaseSuite("SQLite in memory", () => openSqlite({ path: ":memory:" }));
const raced = join(folder, "race.db");
betweenProcesses("sqlite", raced, "", () => openSqlite({ path: raced }));

describe("stores in one SQLite file", () => {
  it("share a connection until the last one is closed", async () => {
    const path = join(folder, "shared.db");
    const stores = openSqlite({ path });
    const alone = openSqlite({ path }).outcomes;
    await stores.close();
    await expect(stores.leases.acquire("n", "me", 1_000)).rejects.toMatchObject({ code: "store_closed" });
    expect((await alone.claim({ key: "k", digest: "d", ttlMs: 1_000 })).state).toBe("yours");
    await alone.close();
  });
  it("are refused without a path and with options nobody reads", () => {
    expect(() => openSqlite({ path: "" })).toThrow("options.path");
    expect(() => openSqlite({ path: "x", leaseMs: 0 })).toThrow("leaseMs must be positive, got 0");
    expect(() => openPostgres({ url: "" })).toThrow("openPostgres needs options.url");
    expect(() => openPostgres({ url: "postgres://x", leaseMs: Number.NaN })).toThrow(
      "leaseMs must be positive, got NaN",
    );
    expect(() => openSqlite({ path: "x", laseMs: 1 } as never)).toThrow('did you mean "leaseMs"?');
    expect(() => openMemory({ maxEntires: 1 } as never)).toThrow('did you mean "maxEntries"?');
  });
});

onPostgres("leases", "leases", (url, schema) => {
  leaseSuite("Postgres", () => openPostgres({ url, schema }));
  betweenProcesses("postgres", url, `${schema}_race`, () => openPostgres({ url, schema: `${schema}_race` }));
});
