import { mkdtempSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MemorySaver } from "@langchain/langgraph";
import { type HeldLease, type LeaseStore, openMemory, type Stores } from "@tenon/store";
import { openSqlite } from "@tenon/store/sqlite";
import { createAgent, tool } from "langchain";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isProcessGone, processHolder, runInteractive, withThreadLease } from "../src/index.ts";
import { later } from "./later.ts";
import { callingModel } from "./scripted-model.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-lease-"));
let stores: Stores;
beforeAll(() => {
  stores = openSqlite({ path: join(folder, "leases.db") });
});
afterAll(async () => {
  await stores.close();
  rmSync(folder, { recursive: true, force: true });
});
let serial = 0;
const freshThread = (): string => `t${serial++}`;

/** Work that ends when it is told to, or is stopped. */
function work() {
  const { promise: begun, resolve: begin } = later<void>();
  const { promise: end, resolve: finish } = later<string>();
  const run = async (signal: AbortSignal): Promise<string> => {
    begin();
    const { promise: stopped, reject } = later<never>();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    return Promise.race([end, stopped]);
  };
  return { run, begun, finish };
}

/** Lets a lease lapse behind its holder's back and gives it to somebody else, as after a long silence. */
async function steal(leases: LeaseStore, lease: HeldLease): Promise<void> {
  await leases.release(lease);
  expect((await leases.acquire(lease.name, "thief", 60_000)).state).toBe("yours");
}

describe("a thread under a lease", () => {
  it("is refused to a second run, which learns who has it and until when", async () => {
    const thread = freshThread();
    const first = work();
    const running = withThreadLease(stores.leases, thread, first.run, { holder: "window one" });
    await first.begun;
    const second = withThreadLease(stores.leases, thread, first.run);
    await expect(second).rejects.toMatchObject({
      name: "ThreadBusyError",
      code: "thread_busy",
      retryable: true,
      data: { threadId: thread, holder: "window one", until: expect.any(Number) },
      message: expect.stringContaining("window one"),
    });
    first.finish("done");
    expect(await running).toBe("done");
  });

  it("is free again after the run, also when it failed, and does not hinder other threads", async () => {
    const thread = freshThread();
    const broken = withThreadLease(stores.leases, thread, () => Promise.reject(new Error("broken")));
    await expect(broken).rejects.toThrow("broken");
    const nested = await withThreadLease(stores.leases, thread, () =>
      withThreadLease(stores.leases, freshThread(), async () => "both"),
    );
    expect(nested).toBe("both");
  });

  it("stays with a run that takes longer than the lease lasts", async () => {
    const thread = freshThread();
    const long = work();
    const running = withThreadLease(stores.leases, thread, long.run, { ttlMs: 1_500 });
    await long.begun;
    await sleep(3_500);
    await expect(withThreadLease(stores.leases, thread, long.run)).rejects.toMatchObject({ code: "thread_busy" });
    long.finish("done");
    expect(await running).toBe("done");
  });

  it("is waited for when asked to, and the waiting can be stopped", async () => {
    const thread = freshThread();
    const first = work();
    const running = withThreadLease(stores.leases, thread, first.run);
    await first.begun;
    const waiting = withThreadLease(stores.leases, thread, async () => "second", { waitMs: 15_000 });
    const abort = new AbortController();
    const impatient = withThreadLease(stores.leases, thread, first.run, { waitMs: 15_000, signal: abort.signal });
    abort.abort(new Error("changed my mind"));
    await expect(impatient).rejects.toThrow();
    first.finish("first");
    expect([await running, await waiting]).toEqual(["first", "second"]);
  });

  it("is taken at once from a process that is known to be dead", async () => {
    const thread = freshThread();
    const dead = await stores.leases.acquire(`thread:${thread}`, "dead", 60_000);
    expect(dead.state).toBe("yours");
    const isGone = (holder: string): boolean => holder === "dead";
    expect(await withThreadLease(stores.leases, thread, async () => "mine", { isGone })).toBe("mine");
    expect(isProcessGone(processHolder())).toBe(false);
    expect(isProcessGone(`${hostname()} 4194305 x`)).toBe(true); // above the highest number a process can have
    expect(isProcessGone("elsewhere 4194305 x")).toBe(false);
    expect(isProcessGone("whoever")).toBe(false);
  });

  it("stops the run when another one has taken it over", async () => {
    const thread = freshThread();
    const stopped = withThreadLease(
      stores.leases,
      thread,
      async (signal, lease) => {
        await steal(stores.leases, lease);
        return work().run(signal);
      },
      { ttlMs: 300 },
    );
    await expect(stopped).rejects.toMatchObject({ code: "thread_lease_lost", maybeExecuted: true });
    // and did not let go of the other's lease
    const other = await stores.leases.acquire(`thread:${thread}`, "third", 1_000);
    expect(other).toMatchObject({ state: "taken", lease: { holder: "thief" } });
  });

  it("stops the run when the store goes silent for as long as the lease lasts", async () => {
    const { leases } = openMemory();
    const silent: LeaseStore = { ...leases, renew: () => new Promise(() => undefined) };
    const failing: LeaseStore = { ...leases, renew: () => Promise.reject(new Error("no database")) };
    for (const store of [silent, failing]) {
      const run = withThreadLease(store, freshThread(), (signal) => work().run(signal), { ttlMs: 300 });
      await expect(run).rejects.toMatchObject({ code: "thread_lease_lost", cause: expect.any(Error) });
    }
  });

  it("is not waited for without end when the store does not answer, and not kept when it answers too late", async () => {
    const { leases } = openMemory();
    const { promise: late, resolve: answer } = later<void>();
    const slow: LeaseStore = { ...leases, acquire: async (...asked) => late.then(() => leases.acquire(...asked)) };
    const thread = freshThread();
    const run = withThreadLease(slow, thread, async () => "never", { ttlMs: 200 });
    await expect(run).rejects.toMatchObject({ code: "lease_timeout", retryable: true });
    answer();
    expect(await withThreadLease(leases, thread, async () => "free", { waitMs: 10_000 })).toBe("free");
  });

  it("survives a store that fails now and then", async () => {
    const { leases } = openMemory();
    let renewals = 0;
    const { promise: often, resolve } = later<void>();
    const shaky: LeaseStore = {
      ...leases,
      renew: async (lease, ttlMs) => {
        renewals += 1;
        if (renewals === 4) resolve();
        if (renewals % 2 === 1) throw new Error("no database");
        return leases.renew(lease, ttlMs);
      },
    };
    expect(await withThreadLease(shaky, freshThread(), () => often.then(() => "done"), { ttlMs: 3_000 })).toBe("done");
  });

  it("passes the caller's signal on to the run", async () => {
    const abort = new AbortController();
    const { run, begun } = work();
    const running = withThreadLease(stores.leases, freshThread(), run, { signal: abort.signal });
    await begun;
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
  });

  it("says which option is unknown, and that a thread has a name", async () => {
    const run = async (): Promise<void> => undefined;
    await expect(withThreadLease(stores.leases, "t", run, { ttlMS: 1 } as never)).rejects.toThrow('mean "ttlMs"?');
    await expect(withThreadLease(stores.leases, "", run)).rejects.toMatchObject({ code: "no_thread" });
    const waitMs = Number.NaN; // would wait for ever
    await expect(withThreadLease(stores.leases, "t", run, { waitMs })).rejects.toMatchObject({
      code: "invalid_option",
    });
  });

  it("may be for months, longer than a timer runs", async () => {
    let asked = 0;
    const counting: LeaseStore = {
      ...stores.leases,
      renew: (...args) => {
        asked += 1;
        return stores.leases.renew(...args);
      },
    };
    const ttlMs = 90 * 24 * 3_600_000;
    const done = await withThreadLease(counting, freshThread(), () => sleep(50).then(() => "done"), { ttlMs });
    expect([done, asked]).toEqual(["done", 0]);
  });
});

describe("an interactive run", () => {
  const pay = { name: "pay", args: {} };
  function agentThat(pays: () => Promise<string>) {
    return createAgent({
      model: callingModel(pay),
      tools: [tool(pays, { name: "pay", description: "Pays", schema: { type: "object", properties: {} } })],
      checkpointer: new MemorySaver(),
    });
  }
  const ask = () => undefined;

  it("holds its thread's lease while the agent works, and only then", async () => {
    const threadId = freshThread();
    const first = work();
    const agent = agentThat(() => first.run(new AbortController().signal));
    const running = runInteractive(agent, "go", { threadId, ask, leases: stores.leases });
    await first.begun;
    const second = runInteractive(agent, "go", { threadId, ask, leases: stores.leases });
    await expect(second).rejects.toMatchObject({ code: "thread_busy", data: { threadId } });
    first.finish("paid");
    expect((await running).reply).toBe("done: success=paid");
    const { reply } = await runInteractive(agent, "plain", { threadId, ask, leases: stores.leases });
    expect(reply).toBe("done: ");
  });

  it("ends with a typed error when its lease is lost on the way", async () => {
    const threadId = freshThread();
    const agent = agentThat(async () => {
      const { lease } = await stores.leases.acquire(`thread:${threadId}`, "me", 1_000);
      await steal(stores.leases, lease);
      return work().run(new AbortController().signal);
    });
    const run = runInteractive(agent, "go", { threadId, ask, leases: stores.leases, lease: { ttlMs: 300 } });
    await expect(run).rejects.toMatchObject({ code: "thread_lease_lost" });
  });

  it("takes a lease store or a lock of your own, not both", async () => {
    const both = { threadId: "t", ask, leases: stores.leases, exclusive: <T>(run: () => Promise<T>) => run() };
    await expect(
      runInteractive(
        agentThat(async () => ""),
        "go",
        both,
      ),
    ).rejects.toMatchObject({ code: "two_locks" });
  });
});
