import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { openMemory, type Stores } from "../src/index.ts";
import { openSqlite } from "../src/sqlite.ts";
import { start } from "./spawn.ts";
import { eventually, newTask } from "./task-help.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-clocks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => void vi.useRealTimers());

const HOUR_MS = 3_600_000;
/** Long enough for a slow machine to look before it is over. */
const LEASE_MS = 5_000;
let files = 0;
const file = (): string => join(folder, `${files++}.db`);
const task = () => newTask({ id: "task", server: "server" });

/** Asks for everything there is, as somebody else does. */
async function grab({ leases, outcomes, tasks }: Stores, ttlMs = LEASE_MS) {
  const { state } = await leases.acquire("thread", "me", ttlMs);
  const claim = await outcomes.claim({ key: "call", digest: "d", ttlMs: 60_000 });
  const run = await tasks.take(["server"], "me");
  return { lease: state, claim: claim.state, task: run?.task.id ?? "none" };
}
const ALL = { lease: "yours", claim: "yours", task: "task" };
const NOTHING = { lease: "taken", claim: "running", task: "none" };

/** Starts a process whose time of day is wrong, and reads what it got. */
async function wrong(path: string, hours: number, how: string) {
  const child = await start("./wrong-clock.ts", path, String(hours), String(LEASE_MS), how);
  const ended = once(child, "close");
  const { stdout } = child;
  if (!stdout) throw new Error("it has no stdout");
  const got: unknown = JSON.parse(String((await once(stdout, "data"))[0]));
  return {
    got,
    async end() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

// elsewhere nothing tells one boot from another, and the time of day counts
describe.skipIf(!existsSync("/proc/sys/kernel/random/boot_id"))("the clock of a SQLite file", () => {
  it.each([5, -5])(
    "lets a process that is %i hours off take nothing that others hold",
    async (hours) => {
      const path = file();
      await using stores = openSqlite({ path, leaseMs: LEASE_MS });
      await stores.tasks.create(task());
      expect(await grab(stores, 60_000)).toEqual(ALL);
      const other = await wrong(path, hours, "look");
      await other.end();
      expect(other.got).toEqual(NOTHING);
    },
    60_000,
  );
  it.each([5, -5])(
    "lets nobody take what a process that is %i hours off holds, until its time is up",
    async (hours) => {
      const path = file();
      await using stores = openSqlite({ path, leaseMs: LEASE_MS });
      await stores.tasks.create(task());
      const other = await wrong(path, hours, "hold");
      expect(other.got).toEqual(ALL);
      expect(await grab(stores)).toEqual(NOTHING);
      await other.end();
      const heir = await eventually(async () => {
        const { state } = await stores.leases.acquire("thread", "heir", LEASE_MS);
        return state === "yours" || undefined;
      });
      expect(heir).toBe(true);
      expect(await eventually(async () => (await stores.tasks.take(["server"], "heir"))?.task.id)).toBe("task");
      const claim = { key: "call", digest: "d", ttlMs: 60_000 };
      expect(await eventually(async () => (await stores.outcomes.claim(claim)).state === "yours" || undefined)).toBe(
        true,
      );
    },
    60_000,
  );
  it.each([5, -5])(
    "is the same for all when the first process of the boot is %i hours off",
    async (hours) => {
      const path = file();
      const first = await wrong(path, hours, "hold");
      expect(first.got).toEqual({ ...ALL, task: "none" });
      await using stores = openSqlite({ path, leaseMs: LEASE_MS });
      expect(await grab(stores)).toEqual({ ...NOTHING, task: "none" });
      await first.end();
      expect(await eventually(async () => (await grab(stores)).lease === "yours" || undefined)).toBe(true);
    },
    60_000,
  );
  it("goes on from the last known time after a new boot whose time of day is behind", async () => {
    const path = file();
    const before = openSqlite({ path });
    await before.tasks.create(task());
    expect(await grab(before)).toEqual(ALL);
    const { lease } = await before.leases.acquire("thread", "me", 1);
    await before.close();
    const late = Date.now() + HOUR_MS;
    const database = new Database(path);
    database.prepare("update tenon_clock set boot = 'the last one', monotonic_ms = 1").run();
    database.prepare("update tenon_leases set fence = ?, expires_at = ? where name = 'thread'").run(late, late);
    database.prepare("update tenon_outcomes set lease_until = ? where key = 'call'").run(late + 5);
    database.close();
    await using after = openSqlite({ path });
    const heir = await after.leases.acquire("thread", "heir", 1_000);
    expect(heir.state).toBe("yours");
    expect(heir.lease.fence).toBeGreaterThan(late);
    expect(heir.lease.fence).toBeGreaterThan(lease.fence);
    expect((await after.outcomes.claim({ key: "call", digest: "d", ttlMs: 60_000 })).state).toBe("yours");
  });
  it("does not follow a new boot back in time that finds nothing kept", async () => {
    const path = file();
    await openSqlite({ path }).close();
    const late = Date.now() + HOUR_MS;
    const database = new Database(path);
    database.prepare("update tenon_clock set boot = 'the last one', at_ms = ?").run(late);
    database.close();
    await using after = openSqlite({ path });
    expect((await after.leases.acquire("n", "me", 1_000)).lease.fence).toBeGreaterThanOrEqual(late);
  });
  it("is not what people read: tasks and audit entries have the time of day", async () => {
    const path = file();
    await openSqlite({ path }).close();
    const database = new Database(path);
    database.prepare("update tenon_clock set at_ms = at_ms + ?").run(5 * HOUR_MS);
    database.close();
    await using stores = openSqlite({ path });
    const { lease } = await stores.leases.acquire("n", "me", 1_000);
    expect(lease.fence).toBeGreaterThan(Date.now() + 4 * HOUR_MS);
    const { createdAt, updatedAt } = await stores.tasks.create(task());
    await stores.tasks.cancel("task");
    const cancelled = await stores.tasks.find("task");
    const { at } = await stores.audit.append({ kind: "intent", callId: "call", data: { tool: "t" } });
    for (const ms of [createdAt, updatedAt, cancelled?.updatedAt, Date.parse(at)]) {
      expect(Math.abs((ms ?? 0) - Date.now())).toBeLessThan(HOUR_MS);
    }
  });
});

describe.each([
  ["memory", () => openMemory({ leaseMs: LEASE_MS })],
  ["SQLite in memory", () => openSqlite({ path: ":memory:", leaseMs: LEASE_MS })],
] as const)("the clock of %s", (_, open) => {
  it.each([5, -5])("does not notice when the time of day jumps by %i hours", async (hours) => {
    await using stores = open();
    await stores.tasks.create(task());
    expect(await grab(stores)).toEqual(ALL);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hours * HOUR_MS });
    expect(await grab(stores)).toEqual(NOTHING);
    await stores.outcomes.putBlob("blob", "text", 60_000);
    vi.useRealTimers();
    expect(await stores.outcomes.getBlob("blob")).toBe("text");
  });
});
