import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable } from "@tenon/core";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Stores } from "../src/index.ts";
import { openPostgres, type PostgresOptions } from "../src/postgres.ts";
import { onPostgres } from "./postgres.ts";
import { start } from "./spawn.ts";
import { eventually, fresh, newTask, takeTask } from "./task-help.ts";
import { openTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-connections-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a process that opens stores, listens, and does not close them. */
async function idles(...args: string[]): Promise<void> {
  const child = await start("./idler.ts", ...args);
  let out = "";
  child.stdout?.on("data", (chunk) => {
    out += chunk;
  });
  const limit = setTimeout(() => child.kill("SIGKILL"), 9_000); // pg keeps an idle connection for 10 s
  const [code] = await once(child, "close");
  clearTimeout(limit);
  expect([code, out.trim()]).toEqual([0, "heard"]);
}

it("what is open on SQLite keeps no process alive", () => idles("sqlite", join(folder, "idle.db")), 20_000);

it("a database that is not there is said so, typed and retryable, without an unhandled rejection", async () => {
  const stores = openPostgres({ url: "postgres://postgres@127.0.0.1:1/postgres", schema: "nowhere" });
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", note);
  stores.tasks.onDue(["server"], () => undefined);
  const end = stores.events.subscribe("topic", () => undefined);
  const away = { name: "ConnectionError", code: "unreachable", retryable: true, maybeExecuted: false };
  await expect(stores.tasks.create(newTask())).rejects.toMatchObject(away);
  await expect(stores.tasks.take(["server"], "me")).rejects.toThrow("in the schema nowhere of Postgres");
  await expect(stores.tasks.find("x")).rejects.toMatchObject(away);
  await expect(stores.events.publish("topic", 1)).rejects.toMatchObject(away);
  await expect(stores.leases.acquire("n", "me", 1_000)).rejects.toMatchObject(away);
  end();
  await stores.close();
  await sleep(50);
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

it("an address of something else is refused before anything is tried", () => {
  const open = () => openPostgres({ url: "mysql://root:hunter2@127.0.0.1/app" });
  expect(open).toThrow("begins with postgres://, this one with mysql://");
  expect(open).not.toThrow("hunter2");
});

onPostgres("an address that is refused", "address", (url) => {
  it("a database or a user that the address names and nobody made is said so, with what to do", async () => {
    const at = (change: (address: URL) => void) => {
      const address = new URL(url);
      change(address);
      return openPostgres({ url: address.href, schema: "nowhere" });
    };
    await using nameless = at((address) => {
      address.pathname = "/tenon_nobody_made_this";
    });
    await expect(nameless.tasks.find("x")).rejects.toMatchObject({
      name: "ConfigError",
      code: "database_address",
      message: expect.stringMatching(
        /in the schema nowhere .* "tenon_nobody_made_this" does not exist; make it \(createdb\)/,
      ),
    });
    await using userless = at((address) => {
      address.username = "tenon_nobody";
    });
    await expect(userless.tasks.find("x")).rejects.toMatchObject({ name: "ConfigError", code: "database_address" });
  });
});

it("limits that are none are refused", () => {
  const url = "postgres://x";
  expect(() => openPostgres({ url, maxConnections: 0 })).toThrow("must be a positive number of connections, got 0");
  expect(() => openPostgres({ url, connectionTimeoutMs: -1 })).toThrow("positive number of milliseconds");
  expect(() => openPostgres({ url, statementTimeoutMs: Number.NaN })).toThrow("positive number of milliseconds");
  expect(() => openPostgres({ url, maxConections: 1 } as never)).toThrow('did you mean "maxConnections"?');
});

onPostgres("connections", "connections", (url, schema) => {
  describe("connections to Postgres", () => {
    let proxy: TcpProxy;
    let admin: pg.Pool;
    let stores: Stores;
    const opened: Stores[] = [];
    const open = (options: Partial<PostgresOptions> = {}): Stores => {
      const made = openPostgres({ url: proxy.url, schema, ...options });
      opened.push(made);
      return made;
    };
    beforeAll(async () => {
      proxy = await openTcpProxy(url);
      admin = new pg.Pool({ connectionString: url, max: 4 });
      stores = openPostgres({ url: proxy.url, schema });
      await stores.tasks.create(newTask()); // makes the tables
    });
    afterEach(async () => {
      proxy.silent = false;
      proxy.down = false;
      await Promise.all(opened.splice(0).map((each) => each.close()));
    });
    afterAll(async () => {
      await stores.close();
      await admin.end();
      await proxy.close();
    });
    /** Ends the server's side of every connection of ours, as a restart does. */
    const terminate = (state = "") =>
      admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'tenon' and pid <> pg_backend_pid() and query ilike '%' || $1 || '%'
         and (query like $2 or query like 'listen %' or query in ('begin', 'commit', 'rollback'))`,
        [state, `%${schema}%`],
      );
    /** Holds a row of a table while something is done to it. */
    async function whileLocked<T>(where: string, work: (unlock: () => Promise<void>) => Promise<T>): Promise<T> {
      const holder = await admin.connect();
      await holder.query("begin");
      await holder.query(`select 1 from ${schema}.${where} for update`);
      let locked = true;
      const unlock = async () => {
        if (locked) await holder.query("rollback");
        locked = false;
      };
      try {
        return await work(unlock);
      } finally {
        await unlock();
        holder.release();
      }
    }
    /** Waits until a statement of ours waits for the row. */
    const blocked = (what: string) =>
      eventually(async () => {
        const { rowCount } = await admin.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%' || $1 || '%' and query like $2`,
          [what, `%${schema}%`],
        );
        return rowCount ? true : undefined;
      });

    it("that the database ends while nothing runs are replaced without anybody noticing", async () => {
      const task = newTask();
      await stores.tasks.create(task);
      await terminate();
      const found = await eventually(() => stores.tasks.find(task.id));
      expect(found.id).toBe(task.id);
      const run = await takeTask(stores.tasks, task);
      await terminate();
      await run.record("a", [1]);
      await terminate();
      await run.finish({ status: "completed", result: 1 });
    });
    it("that are cut fail the write that ran, typed, and the next one works", async () => {
      const { lease } = await stores.leases.acquire(fresh("lease"), "me", 60_000);
      for (const cut of [() => terminate("tenon_leases"), async () => proxy.cut()]) {
        const failed = await whileLocked(`tenon_leases where name = '${lease.name}'`, async () => {
          const released = stores.leases.release(lease).catch((error: unknown) => error);
          await blocked("tenon_leases");
          await cut();
          return released;
        });
        expect(failed).toMatchObject({
          name: "ConnectionError",
          code: "connection_lost",
          retryable: true,
          maybeExecuted: true,
        });
        expect(isRetryable(failed)).toBe(false);
      }
      expect((await stores.leases.acquire(fresh("lease"), "me", 60_000)).state).toBe("yours");
    });
    it("that are cut in a transaction have changed nothing, and it is done again once", async () => {
      const task = newTask();
      await stores.tasks.create(task);
      const run = await takeTask(stores.tasks, task);
      await whileLocked(`tenon_tasks where id = '${task.id}'`, async (unlock) => {
        const finished = run.finish({ status: "completed", result: "once" });
        await blocked("tenon_tasks");
        await terminate("tenon_tasks");
        await blocked("tenon_tasks");
        await unlock();
        await finished;
      });
      expect(await stores.tasks.find(task.id)).toMatchObject({ status: "completed", result: "once" });
      const second = newTask();
      await stores.tasks.create(second);
      await whileLocked(`tenon_tasks where id = '${second.id}'`, async () => {
        const cancelled = stores.tasks.cancel(second.id).catch((error: unknown) => error);
        await blocked("tenon_tasks");
        await terminate("tenon_tasks");
        await blocked("tenon_tasks");
        await terminate("tenon_tasks");
        const lost = { name: "ConnectionError", code: "connection_lost", maybeExecuted: false };
        const error = await cancelled;
        expect(error).toMatchObject(lost);
        expect(isRetryable(error)).toBe(true);
      });
      expect(await stores.tasks.cancel(second.id)).toBe(true);
    });
    it("that are cut do not lose a step, and do not keep it twice", async () => {
      const task = newTask();
      await stores.tasks.create(task);
      const run = await takeTask(stores.tasks, task);
      await run.record("a", ["before"]);
      await whileLocked(`tenon_task_steps where task = '${task.id}'`, async (unlock) => {
        const recorded = run.record("a", ["after"]);
        await blocked("tenon_task_steps");
        proxy.cut();
        await blocked("tenon_task_steps");
        await unlock();
        await recorded;
      });
      await run.release();
      expect([...(await takeTask(stores.tasks, task)).steps]).toEqual([["a", ["after"]]]);
    });
    it("to a database that was away work again when it is back", async () => {
      const other = open({ connectionTimeoutMs: 2_000 });
      proxy.down = true;
      const task = newTask();
      await expect(other.tasks.create(task)).rejects.toMatchObject({ code: "unreachable" });
      await expect(other.tasks.take([task.server], "me")).rejects.toMatchObject({ code: "unreachable" });
      proxy.down = false;
      await other.tasks.create(task);
      await takeTask(other.tasks, task);
      await other.tasks.close();
    });
    it("that say nothing any more are given up after the time of a statement", async () => {
      const other = open({ statementTimeoutMs: 400, connectionTimeoutMs: 500 });
      const task = newTask();
      await other.tasks.create(task);
      proxy.silent = true;
      const before = performance.now();
      await expect(other.tasks.cancel(task.id)).rejects.toMatchObject({ name: "ConnectionError", retryable: true });
      expect(performance.now() - before).toBeLessThan(8_000);
      proxy.silent = false;
      proxy.cut();
      expect(await eventually(() => other.tasks.cancel(task.id).catch(() => undefined))).toBe(true);
    });
    it("are asked for one thing no longer than statementTimeoutMs", async () => {
      const other = open({ statementTimeoutMs: 300 });
      const task = newTask();
      await other.tasks.create(task);
      await whileLocked(`tenon_tasks where id = '${task.id}'`, async () => {
        await expect(other.tasks.cancel(task.id)).rejects.toMatchObject({
          name: "ConnectionError",
          code: "timeout",
          retryable: true,
          maybeExecuted: false,
          message: expect.stringContaining("300 ms (statementTimeoutMs)"),
        });
      });
      expect(await other.tasks.cancel(task.id)).toBe(true);
    });
    it("are never more than maxConnections, and who waits too long is told", async () => {
      const other = open({ maxConnections: 2, connectionTimeoutMs: 400 });
      const task = newTask();
      await other.tasks.create(task);
      const before = proxy.open;
      await whileLocked(`tenon_tasks where id = '${task.id}'`, async (unlock) => {
        const cancels = [other.tasks.cancel(task.id), other.tasks.cancel(task.id)];
        await blocked("tenon_tasks");
        await expect(other.tasks.find(task.id)).rejects.toMatchObject({
          name: "ConnectionError",
          code: "busy",
          retryable: true,
          message: expect.stringContaining("all 2 are in use"),
        });
        await unlock();
        expect((await Promise.all(cancels)).toSorted()).toEqual([false, true]);
      });
      await Promise.all(Array.from({ length: 12 }, () => other.tasks.find(task.id)));
      expect(proxy.open).toBeLessThanOrEqual(before + 1);
    });
    it("that listen are one for all listeners, come back when they are cut, and say what they may have missed", async () => {
      const other = open();
      const topic = fresh("topic");
      const heard: unknown[] = [];
      let gaps = 0;
      let wakes = 0;
      await other.leases.acquire(fresh("lease"), "me", 1_000);
      const before = proxy.open;
      const ends = [
        other.events.subscribe(topic, (message) => heard.push(message), { onGap: () => (gaps += 1) }),
        other.events.subscribe(topic, (message) => heard.push(message)),
        other.tasks.onDue(["server"], () => (wakes += 1)),
      ];
      await other.events.publish(topic, 1);
      await eventually(() => (heard.length === 2 ? true : undefined));
      expect(proxy.open).toBe(before + 1);
      const [gapsBefore, wakesBefore] = [gaps, wakes];
      for (const cut of [() => proxy.cut(), () => terminate("listen")]) {
        const was = gaps;
        await cut();
        await eventually(() => (gaps > was ? true : undefined));
        heard.length = 0;
        await stores.events.publish(topic, 2).catch(() => stores.events.publish(topic, 2)); // its connection was cut too
        await eventually(() => (heard.length >= 2 ? true : undefined));
      }
      expect(gaps).toBe(gapsBefore + 2);
      expect(wakes).toBeGreaterThanOrEqual(wakesBefore + 2);
      for (const end of ends) end();
      const listening = () =>
        admin.query(
          `listen nobody; select count(*)::int as count from pg_stat_activity where query = 'listen ${schema}_signals'`,
        );
      await eventually(async () => {
        const results: unknown = await listening();
        const rows = Array.isArray(results) ? results.at(-1).rows : [];
        return rows[0]?.count === 0 ? true : undefined;
      });
    });
    it("reach every process: a message of one is heard by another", async () => {
      const other = open();
      const topic = fresh("topic");
      const heard: unknown[] = [];
      const task = newTask();
      let wakes = 0;
      let changes = 0;
      other.events.subscribe(topic, (message) => heard.push(message));
      other.tasks.onDue([task.server], () => (wakes += 1));
      other.tasks.onChange(task.id, () => (changes += 1));
      await other.events.publish(topic, "own");
      await eventually(() => (heard.length === 1 ? true : undefined));
      [wakes, changes] = [0, 0];
      await stores.events.publish(topic, "foreign");
      await stores.tasks.create(task);
      await stores.tasks.cancel(task.id);
      await eventually(() => (heard.length === 2 && wakes === 1 && changes === 1 ? true : undefined));
      expect(heard).toEqual(["own", "foreign"]);
    });
    it("keep no process alive that has nothing else to do", () => idles("postgres", url, schema), 20_000);
  });
});
