import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Stores, TaskStore } from "../src/index.ts";
import { eventually, fresh, newTask, takeTask } from "./task-help.ts";

const LEASE_MS = 800;

/** What every task store must do when a run ends early, when time is over, and for those who watch; run against each of them. @param open with leases of `leaseMs` */
export function taskRecoverySuite(kind: string, open: (leaseMs: number) => Stores): void {
  describe(`recovery of tasks in ${kind}`, () => {
    let stores: Stores;
    let tasks: TaskStore;
    /** The same tasks, with leases that lapse soon. */
    let brief: Stores;
    const ends: (() => void)[] = [];
    beforeAll(() => {
      stores = open(60_000);
      tasks = stores.tasks;
      brief = open(LEASE_MS);
    });
    afterEach(() => {
      for (const end of ends.splice(0)) end();
    });
    afterAll(async () => {
      await stores.close();
      await brief.close();
    });
    const status = async (id: string, store = tasks) => (await store.find(id))?.status;

    describe("after a run that ended early", () => {
      it("are due again after a while, and count the runs that came to nothing", async () => {
        const task = newTask();
        await tasks.create(task);
        await (await takeTask(tasks, task)).again(0, "first");
        expect(await tasks.find(task.id)).toMatchObject({ fruitless: 1, statusMessage: "first" });
        const second = await takeTask(tasks, task);
        expect(second.task.fruitless).toBe(1);
        await second.again(1_500);
        expect(await tasks.take([task.server], "me")).toBeUndefined();
        const third = await eventually(() => tasks.take([task.server], "me"));
        expect(third.task).toMatchObject({ fruitless: 2, statusMessage: "first" });
        await third.record("s", []);
        await third.again(0);
        expect((await tasks.find(task.id))?.fruitless).toBe(0);
        await (await takeTask(tasks, task)).again(0);
        await (await takeTask(tasks, task)).release();
        expect((await tasks.find(task.id))?.fruitless).toBe(1);
        await (await takeTask(tasks, task)).ask([], 1);
        expect((await tasks.find(task.id))?.fruitless).toBe(0);
      });
      it("are taken over from a process that fell silent, which counts the same", async () => {
        const task = newTask();
        await brief.tasks.create(task);
        await takeTask(brief.tasks, task);
        expect(await brief.tasks.take([task.server], "early")).toBeUndefined();
        const second = await eventually(() => brief.tasks.take([task.server], "second"));
        expect(second.task.fruitless).toBe(1);
        const third = await eventually(() => brief.tasks.take([task.server], "third"));
        expect(third.task.fruitless).toBe(2);
        await third.record("s", []);
        const fourth = await eventually(() => brief.tasks.take([task.server], "fourth"));
        expect(fourth.task.fruitless).toBe(0);
        await fourth.finish({ status: "completed", result: null });
      });
      it("stay with a run that renews", async () => {
        const task = newTask();
        await brief.tasks.create(task);
        const run = await takeTask(brief.tasks, task);
        for (let i = 0; i < 6; i++) {
          await sleep(LEASE_MS / 4);
          expect(await run.renew()).toBe(true);
          expect(await brief.tasks.take([task.server], "other")).toBeUndefined();
        }
        await run.finish({ status: "completed", result: null });
      });
      it("go on when they were given up on and somebody says so", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await run.record("s", ["kept"]);
        await run.finish({ status: "failed", error: { code: 1, message: "m" }, statusMessage: "gave up", dead: true });
        expect(await tasks.list({ server: task.server, dead: true })).toHaveLength(1);
        expect(await tasks.find(task.id)).toMatchObject({ status: "failed", dead: true });
        expect(await tasks.retry(task.id)).toBe(true);
        expect(await tasks.retry(task.id)).toBe(false);
        const found = await tasks.find(task.id);
        expect(found).toMatchObject({ status: "working", dead: false, fruitless: 0 });
        expect(found && "error" in found).toBe(false);
        expect((await takeTask(tasks, task)).steps.get("s")).toEqual(["kept"]);
      });
      it("do not go on when they failed for good", async () => {
        const task = newTask();
        await tasks.create(task);
        await (await takeTask(tasks, task)).finish({ status: "failed", error: { code: 1, message: "m" } });
        expect(await tasks.retry(task.id)).toBe(false);
        expect(await status(task.id)).toBe("failed");
      });
    });

    it("are taken also by a clock that has gone back since their last run", async () => {
      const task = newTask();
      await tasks.create(task);
      await (await takeTask(tasks, task)).ask([{ key: "q", request: {} }], {});
      const now = Date.now;
      Date.now = () => now() - 3_600_000; // Postgres has a clock of its own
      try {
        await tasks.answer(task.id, { q: { action: "accept" } });
        expect((await takeTask(tasks, task)).task.id).toBe(task.id);
      } finally {
        Date.now = now;
      }
    });

    describe("whose time is over", () => {
      it("are gone once they have ended, and deleted by a sweep", async () => {
        const task = newTask({ ttlMs: 2_000 });
        await tasks.create(task);
        await (await takeTask(tasks, task)).finish({ status: "completed", result: 1 });
        expect(await status(task.id)).toBe("completed");
        await eventually(async () => ((await tasks.find(task.id)) ? undefined : true));
        expect(await tasks.list({ server: task.server })).toEqual([]);
        expect((await tasks.count(task.server)).completed).toBe(0);
        expect((await tasks.sweep()).deleted).toBeGreaterThan(0);
      });
      it("are ended by a sweep while they work or wait, and their run is told", async () => {
        const [running, waiting] = [newTask({ ttlMs: 2_000 }), newTask({ ttlMs: 2_000 })];
        await tasks.create(running);
        await tasks.create(waiting);
        const run = await takeTask(tasks, running);
        await (await takeTask(tasks, waiting)).ask([{ key: "a", request: {} }], 1);
        await sleep(2_200);
        expect(await status(running.id)).toBe("working");
        expect((await tasks.sweep()).ended).toBeGreaterThanOrEqual(2);
        expect([await status(running.id), await status(waiting.id)]).toEqual([undefined, undefined]);
        expect(await run.renew()).toBe(false);
        await tasks.sweep();
        await run.record("under way", []); // kept as long as it may write
        await run.finish({ status: "completed", result: 1 });
        await tasks.sweep();
        await expect(run.record("more", [])).rejects.toThrow("the task was deleted");
      });
      it("stay when they have no time, and when it is not over", async () => {
        const [task, long] = [newTask({ ttlMs: null }), newTask()];
        await tasks.create(task);
        await tasks.create(long);
        await (await takeTask(tasks, task)).finish({ status: "completed", result: 1 });
        await tasks.sweep();
        expect(await tasks.find(task.id)).toMatchObject({ ttlMs: null, status: "completed" });
        expect(await status(long.id)).toBe("working");
      });
    });

    it("made due again by a sweep are those whose runner fell silent", async () => {
      const task = newTask();
      await brief.tasks.create(task);
      await takeTask(brief.tasks, task);
      const requeued = await eventually(async () => {
        const swept = await brief.tasks.sweep();
        return swept.requeued > 0 ? swept.requeued : undefined;
      });
      expect(requeued).toBe(1);
      expect((await brief.tasks.sweep()).requeued).toBe(0);
      expect((await takeTask(brief.tasks, task)).task.fruitless).toBe(1);
    });

    it("are listed newest first, and counted", async () => {
      const server = fresh("server");
      const made: string[] = [];
      for (let i = 0; i < 4; i++) {
        made.unshift((await tasks.create(newTask({ server }))).id);
        await sleep(2);
      }
      await tasks.cancel(made[0] ?? "");
      const ids = async (filter: Parameters<TaskStore["list"]>[0]) => (await tasks.list(filter)).map(({ id }) => id);
      expect(await ids({ server })).toEqual(made);
      expect(await ids({ server, limit: 2 })).toEqual(made.slice(0, 2));
      expect(await ids({ server, status: "working" })).toEqual(made.slice(1));
      expect(await ids({ server, dead: false, status: "cancelled" })).toEqual(made.slice(0, 1));
      expect(await ids({ server, dead: true })).toEqual([]);
      expect((await tasks.list()).length).toBeGreaterThanOrEqual(4);
      expect(await tasks.count(server)).toEqual({
        working: 3,
        input_required: 0,
        completed: 0,
        failed: 0,
        cancelled: 1,
      });
      expect((await tasks.count()).working).toBeGreaterThanOrEqual(3);
    });

    describe("word of changes", () => {
      it("reaches those who run tasks when one is due, and nobody else", async () => {
        const task = newTask();
        let wakes = 0;
        let others = 0;
        ends.push(tasks.onDue([fresh("server"), task.server], () => (wakes += 1)));
        ends.push(tasks.onDue([fresh("server")], () => (others += 1)));
        await sleep(200); // the first listener opens the connection, which wakes once
        const woken = async () => {
          const before = wakes;
          await eventually(() => (wakes > before ? true : undefined));
        };
        others = 0;
        await Promise.all([woken(), tasks.create(task)]);
        const run = await takeTask(tasks, task);
        await Promise.all([woken(), run.again(50)]);
        const second = await eventually(() => tasks.take([task.server], "me"));
        await second.ask([{ key: "a", request: {} }], 1);
        await Promise.all([woken(), tasks.answer(task.id, { a: {} })]);
        const third = await takeTask(tasks, task);
        await Promise.all([woken(), third.release()]);
        expect(others).toBe(0);
      });
      it("reaches those who follow a task at each change, until they stop", async () => {
        const task = newTask();
        await tasks.create(task);
        let changes = 0;
        const end = tasks.onChange(task.id, () => (changes += 1));
        ends.push(end);
        await sleep(200);
        const changed = async <T>(work: Promise<T>): Promise<T> => {
          const before = changes;
          const result = await work;
          await eventually(() => (changes > before ? true : undefined));
          return result;
        };
        const run = await takeTask(tasks, task);
        await changed(run.report({ statusMessage: "on" }));
        await changed(run.ask([{ key: "a", request: {} }], 1));
        await changed(tasks.answer(task.id, { a: {} }));
        await changed((await takeTask(tasks, task)).again(0, "again"));
        await changed(tasks.cancel(task.id));
        end();
        end();
        const before = changes;
        const other = newTask();
        await tasks.create(other);
        await tasks.cancel(other.id);
        await sleep(100);
        expect(changes).toBe(before);
      });
    });
  });
}
