import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { NewTask, Stores, TaskStore } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { onPostgres } from "./postgres.ts";
import { eventually, fresh, newTask, takeTask } from "./task-help.ts";

onPostgres("the queue of tasks", "queue", (url, schema) => {
  describe("the queue of tasks in Postgres", () => {
    const jobs = `${schema}_jobs`;
    let stores: Stores;
    let tasks: TaskStore;
    let admin: pg.Pool;
    beforeAll(async () => {
      stores = openPostgres({ url, schema });
      tasks = stores.tasks;
      admin = new pg.Pool({ connectionString: url, max: 2 });
      await tasks.create(newTask()); // makes the tables
    });
    afterAll(async () => {
      await stores.close();
      await admin.end();
    });

    const run = async (sql: string, ...values: unknown[]) => (await admin.query(sql, values)).rows;
    const jobsOf = ({ id }: NewTask) =>
      run(`select id, name, state, start_after from ${jobs}.job where data->>'task' = $1`, id);
    const waiting = async (task: NewTask) =>
      (await jobsOf(task)).filter(({ state }) => state === "created" || state === "retry").length;
    /** Makes a statement on a table do something else as well, for as long as the work runs. */
    async function during(table: string, when: string, body: string, work: () => Promise<void>): Promise<void> {
      await run(`create or replace function ${schema}.disturb() returns trigger language plpgsql as
        $$ begin ${body} return new; end $$`);
      await run(`create trigger disturb before ${when} on ${table} for each row execute function ${schema}.disturb()`);
      try {
        await work();
      } finally {
        await run(`drop trigger if exists disturb on ${table}`);
      }
    }

    it("has a job from the moment a task is made, and none once it was taken", async () => {
      const task = newTask();
      await tasks.create(task);
      expect(await waiting(task)).toBe(1);
      const taken = await takeTask(tasks, task);
      expect(await jobsOf(task)).toEqual([expect.objectContaining({ state: "completed" })]);
      await taken.again(60_000);
      const later = (await jobsOf(task)).find(({ state }) => state === "created");
      expect(later?.start_after.getTime()).toBeGreaterThan(Date.now() + 50_000);
    });
    it("has no job and no lease for a task that waits for answers, and a job when they are there", async () => {
      const task = newTask();
      await tasks.create(task);
      await (await takeTask(tasks, task)).ask([{ key: "a", request: {} }], 1);
      expect(await waiting(task)).toBe(0);
      expect(await run(`select holder from ${schema}.tenon_leases where name = $1`, `task:${task.id}`)).toEqual([
        { holder: "" },
      ]);
      await tasks.sweep();
      expect(await waiting(task)).toBe(0);
      await tasks.answer(task.id, { a: {} });
      expect(await waiting(task)).toBe(1);
      await takeTask(tasks, task);
    });
    it("keeps neither task nor job when the transaction that makes them is rolled back", async () => {
      const [first, task] = [newTask(), newTask()];
      await tasks.create(first);
      await run(`create function ${schema}.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'no room'; end $$`);
      // at the commit, when task and job have been written
      await run(`create constraint trigger refuse after insert on ${schema}.tenon_tasks deferrable initially deferred
        for each row execute function ${schema}.refuse()`);
      await expect(tasks.create(task)).rejects.toThrow("no room");
      await run(`drop trigger refuse on ${schema}.tenon_tasks`);
      await during(`${schema}.tenon_tasks`, "update", "raise exception 'no room';", async () => {
        await expect(tasks.take([first.server], "me")).rejects.toThrow("no room"); // the job was fetched before
      });
      expect(await tasks.find(task.id)).toBeUndefined();
      expect(await jobsOf(task)).toEqual([]);
      expect(await waiting(first)).toBe(1);
      expect((await takeTask(tasks, first)).task.fruitless).toBe(0);
    });
    it("loses nothing to a database connection that ends while a job is completed", async () => {
      for (const deaths of [1, 2]) {
        const task = newTask();
        await tasks.create(task);
        const deadly = `${schema}.deaths_${deaths}`;
        await run(`create sequence ${deadly}`); // counts on, also when its transaction is rolled back
        const [{ partition_name: table }] = await run(
          `select partition_name from ${jobs}.queue where name = $1`,
          task.server,
        );
        const die = `if new.state = 'completed' and nextval('${deadly}') <= ${deaths} then
          perform pg_terminate_backend(pg_backend_pid()); end if;`;
        await during(`${jobs}.${table}`, "update", die, async () => {
          if (deaths === 2) {
            await expect(tasks.take([task.server], "me")).rejects.toMatchObject({
              name: "ConnectionError",
              code: "connection_lost",
              retryable: true,
              maybeExecuted: false,
            });
          }
          const taken = await takeTask(tasks, task);
          expect(taken.task.fruitless).toBe(0);
          expect(await tasks.take([task.server], "other")).toBeUndefined();
        });
      }
    });
    it("never runs a task twice for a job that is there twice, or a word of it that comes twice", async () => {
      const task = newTask();
      await tasks.create(task);
      await run(
        `insert into ${jobs}.job (name, data) select name, data from ${jobs}.job, generate_series(1, 3)
        where data->>'task' = $1`,
        task.id,
      );
      await run(`insert into ${jobs}.job (name, data) values ($1, '{"task":"nobody"}')`, task.server);
      const word = JSON.stringify({ t: `due:${task.server}`, m: task.id });
      let wakes = 0;
      const end = tasks.onDue([task.server], () => {
        wakes += 1;
      });
      await eventually(() => (wakes > 0 ? true : undefined)); // listens
      wakes = 0;
      await run(`select pg_notify('${schema}_signals', $1), pg_notify('${schema}_signals', $1 || ' ')`, word);
      await run(`select pg_notify('${schema}_signals', 'not ours'), pg_notify('${schema}_signals', $1)`, word);
      await eventually(() => (wakes === 3 ? true : undefined));
      end();
      const taken = await Promise.all(Array.from({ length: 6 }, (_, i) => tasks.take([task.server], `w${i}`)));
      expect(taken.filter(Boolean)).toHaveLength(1);
      expect(await waiting(task)).toBe(0);
      await taken.find(Boolean)?.release();
      await (await takeTask(tasks, task)).finish({ status: "completed", result: 1 });
      await run(
        `insert into ${jobs}.job (name, data) values ($1, jsonb_build_object('task', $2::text))`,
        task.server,
        task.id,
      );
      expect(await tasks.take([task.server], "late")).toBeUndefined();
    });
    it("puts a job back that came too early", async () => {
      const task = newTask();
      await tasks.create(task);
      await (await takeTask(tasks, task)).again(3_000);
      await run(`update ${jobs}.job set start_after = now() - interval '1 second' where data->>'task' = $1`, task.id);
      expect(await tasks.take([task.server], "early")).toBeUndefined();
      expect(await waiting(task)).toBe(1);
      await eventually(() => tasks.take([task.server], "me"));
    });
    it("gets lost jobs and lost queues back from a sweep, once", async () => {
      const [one, two] = [newTask(), newTask()];
      await tasks.create(one);
      await tasks.create(two);
      await tasks.sweep();
      expect((await tasks.sweep()).requeued).toBe(0); // both wait
      await run(`delete from ${jobs}.job where data->>'task' = $1`, one.id);
      await run(`delete from ${jobs}.job where data->>'task' = $1`, two.id);
      await run(`select ${jobs}.delete_queue($1)`, two.server);
      expect(await tasks.take([one.server, two.server], "me")).toBeUndefined();
      let woken = 0;
      const end = tasks.onDue([two.server], () => {
        woken += 1;
      });
      await eventually(() => (woken > 0 ? true : undefined));
      // on a store of its own, as of another process
      await using other = openPostgres({ url, schema });
      expect((await other.tasks.sweep()).requeued).toBe(2);
      await eventually(() => (woken > 1 ? true : undefined));
      end();
      expect((await tasks.sweep()).requeued).toBe(0);
      const server = newTask({ server: two.server });
      await tasks.create(server);
      await takeTask(tasks, one);
      await takeTask(tasks, two);
      await takeTask(tasks, server);
    });
    it("cleans up jobs that are done with, now and then, as its store sweeps", async () => {
      const task = newTask();
      await tasks.create(task);
      await (await takeTask(tasks, task)).finish({ status: "completed", result: 1 });
      await run(`update ${jobs}.job set completed_on = now() - interval '1 hour' where data->>'task' = $1`, task.id);
      await tasks.sweep();
      expect(await jobsOf(task)).toHaveLength(1);
      const later = Date.now() + 10 * 60_000;
      vi.spyOn(Date, "now").mockReturnValue(later);
      await tasks.sweep();
      vi.restoreAllMocks();
      expect(await jobsOf(task)).toEqual([]);
      await tasks.create(newTask()); // the connection is as good as before
    });
    it("is made for any name of a server", async () => {
      for (const name of [
        "Server mit Leerzeichen / ünd 日本",
        "-",
        "d.x",
        "_",
        `${"s".repeat(450)}`,
        "'; drop table x; --",
      ]) {
        const task = newTask({ server: `${name}${fresh("")}` });
        await tasks.create(task);
        await (await takeTask(tasks, task)).finish({ status: "completed", result: null });
      }
    });
    it("serves several servers in turn", async () => {
      const [busy, quiet] = [fresh("busy"), fresh("quiet")];
      for (let i = 0; i < 5; i++) await tasks.create(newTask({ server: busy }));
      await tasks.create(newTask({ server: quiet }));
      const servers: string[] = [];
      for (let i = 0; i < 2; i++) servers.push((await tasks.take([busy, quiet], "me"))?.task.server ?? "");
      expect(servers.toSorted()).toEqual([busy, quiet]);
    });
    it("starts in processes and stores that begin together, with one connection each", async () => {
      const many = Array.from({ length: 4 }, () =>
        openPostgres({ url, schema: `${schema}_race`, maxConnections: 1, connectionTimeoutMs: 20_000 }),
      );
      const made = many.flatMap((each) => [newTask(), newTask()].map((task) => ({ each, task })));
      await Promise.all(made.map(({ each, task }) => each.tasks.create(task)));
      for (const { each, task } of made) await takeTask(each.tasks, task);
      await Promise.all(many.map((each) => each.close()));
    });
    it("ends with its store, and leaves the connections to the others", async () => {
      const other = openPostgres({ url, schema });
      const task = newTask();
      await other.tasks.create(task);
      await other.tasks.close();
      await other.tasks.close();
      await expect(other.tasks.find(task.id)).rejects.toMatchObject({ code: "store_closed" });
      expect((await other.leases.acquire(task.id, "me", 1_000)).state).toBe("yours");
      await other.close();
      await takeTask(tasks, task);
    });
    it("is made again when somebody dropped its tables, and no task is lost with it", async () => {
      const task = newTask();
      await tasks.create(task);
      await run(`drop schema ${jobs} cascade`);
      await expect(tasks.take([task.server], "me")).rejects.toThrow("does not exist");
      await tasks.create({ ...newTask(), server: task.server });
      const servers = [task.server];
      await eventually(async () => {
        await tasks.sweep();
        const taken = await tasks.take(servers, "me");
        return taken?.task.id === task.id ? taken : undefined;
      });
    });
  });
});
