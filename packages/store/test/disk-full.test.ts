import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { smallDisk } from "../../../test/full-disk.ts";
import { StorageError } from "../src/index.ts";
import { openSqlite } from "../src/sqlite.ts";
import { newTask } from "./task-help.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-disk-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const LARGE = "x".repeat(100_000);
const large = () => newTask({ call: { arguments: { text: LARGE } } });

const failure = async (work: Promise<unknown>): Promise<StorageError> => {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof StorageError) return error;
  throw new Error("it was to fail with a StorageError", { cause: error });
};

describe("a full disk", () => {
  it("refuses what does not fit, writes nothing of it, and goes on when there is room", async () => {
    const disk = await smallDisk(() => openSqlite({ path: join(folder, "full.db") }));
    await using stores = disk.opened;
    const before = newTask();
    await stores.tasks.create(before);
    disk.fill();
    const task = large();
    const refused = await failure(stores.tasks.create(task));
    expect(refused).toMatchObject({ code: "disk_full", retryable: true, maybeExecuted: false });
    expect(refused.message).toContain("Make room");
    expect(JSON.stringify(refused) + refused.message).not.toContain(folder);
    expect(refused.cause).toMatchObject({ code: "SQLITE_FULL" });
    expect(await stores.tasks.find(task.id)).toBeUndefined();
    expect(await stores.tasks.find(before.id)).toBeDefined(); // what is there can be read
    expect((await failure(stores.outcomes.putBlob("blob", LARGE, 1_000))).code).toBe("disk_full");
    const entry = { kind: "intent", callId: "call", data: { tool: "t", text: LARGE } } as const;
    expect((await failure(stores.audit.append(entry))).code).toBe("disk_full");
    disk.heal();
    expect((await stores.tasks.create(task)).id).toBe(task.id);
    await stores.audit.append(entry);
    expect(await stores.audit.verify()).toMatchObject({ intact: true, entries: 1 });
  });
  it("leaves a claim that was begun where it was, to be finished later", async () => {
    const disk = await smallDisk(() => openSqlite({ path: join(folder, "claim.db") }));
    await using stores = disk.opened;
    const claim = await stores.outcomes.claim({ key: "k", digest: "d", ttlMs: 60_000 });
    if (claim.state !== "yours") throw new Error(claim.state);
    disk.fill();
    expect((await failure(stores.outcomes.record(claim.lease, "step", LARGE))).code).toBe("disk_full");
    expect((await failure(stores.outcomes.finish(claim.lease, LARGE, { ttlMs: 60_000 }))).code).toBe("disk_full");
    disk.heal();
    await stores.outcomes.finish(claim.lease, LARGE, { ttlMs: 60_000 });
    expect(await stores.outcomes.claim({ key: "k", digest: "d", ttlMs: 60_000 })).toMatchObject({ state: "finished" });
  });
});

describe("a read-only file", () => {
  it("is said as such, and another try is no use", async () => {
    const disk = await smallDisk(() => openSqlite({ path: join(folder, "read.db") }));
    await using stores = disk.opened;
    disk.protect();
    const refused = await failure(stores.leases.acquire("n", "me", 1_000));
    expect(refused).toMatchObject({ code: "read_only", retryable: false, maybeExecuted: false });
    disk.heal();
    expect((await stores.leases.acquire("n", "me", 1_000)).state).toBe("yours");
  });
});
