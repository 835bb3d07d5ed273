import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@tenon/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Stores, TaskStore } from "../src/index.ts";
import { eventually, fresh, newTask, takeTask } from "./task-help.ts";

const LEASE_MS = 800;

/** What every task store must do; run against each of them. @param open with leases of `leaseMs` */
export function taskSuite(kind: string, open: (leaseMs: number) => Stores): void {
  describe(`tasks in ${kind}`, () => {
    let stores: Stores;
    let tasks: TaskStore;
    /** The same tasks, with leases that lapse soon. */
    let brief: Stores;
    beforeAll(() => {
      stores = open(60_000);
      tasks = stores.tasks;
      brief = open(LEASE_MS);
    });
    afterAll(async () => {
      await stores.close();
      await brief.close();
    });
    const status = async (id: string, store = tasks) => (await store.find(id))?.status;

    describe("from creation to the end", () => {
      it("keep what was called, run it once, and keep how it ended", async () => {
        const task = newTask();
        const made = await tasks.create(task);
        expect(made).toMatchObject({ ...task, status: "working", fruitless: 0, dead: false, requests: {} });
        expect(made.updatedAt).toBe(made.createdAt);
        expect(await tasks.find(task.id)).toEqual(made);
        const run = await takeTask(tasks, task);
        expect(run.task).toEqual(made);
        expect([run.journal, run.steps.size, run.answers.size]).toEqual([undefined, 0, 0]);
        expect(await tasks.take([task.server], "other")).toBeUndefined();
        await run.report({ statusMessage: "1 of 2", progress: { done: 1 } });
        expect(await tasks.find(task.id)).toMatchObject({ statusMessage: "1 of 2", progress: { done: 1 } });
        await run.report({ progress: { done: 2 } });
        expect(await tasks.find(task.id)).toMatchObject({ statusMessage: "1 of 2", progress: { done: 2 } });
        await run.finish({ status: "completed", result: { refunded: 3 }, statusMessage: "done" });
        const ended = await tasks.find(task.id);
        expect(ended).toMatchObject({ status: "completed", result: { refunded: 3 }, statusMessage: "done" });
        expect(ended?.updatedAt).toBeGreaterThanOrEqual(made.updatedAt);
        expect(await tasks.take([task.server], "other")).toBeUndefined();
      });
      it("keep an error as it was, and no result", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await run.finish({ status: "failed", error: { code: -32603, message: "no" } });
        const ended = await tasks.find(task.id);
        expect(ended).toMatchObject({ status: "failed", error: { code: -32603, message: "no" }, dead: false });
        expect(ended && "result" in ended).toBe(false);
      });
      it("keep any JSON, results that are null or false and keys that mean something to JavaScript too", async () => {
        const call = JSON.parse('{"__proto__":{"a":1},"text":"ä\\u0001 \\"x\\" 日本"}') as JsonObject;
        for (const result of [null, false, "", 0, ["\n"], call]) {
          const task = newTask({ call });
          await tasks.create(task);
          const run = await takeTask(tasks, task);
          expect(JSON.stringify(run.task.call)).toBe(JSON.stringify(call));
          await run.report({ statusMessage: "a\0b \ud800", progress: call });
          expect((await tasks.find(task.id))?.statusMessage).toBe("a\0b \ud800");
          await run.finish({ status: "completed", result });
          expect(JSON.stringify((await tasks.find(task.id))?.result)).toBe(JSON.stringify(result));
        }
      });
      it("hand each task to one of many that ask at once, oldest first", async () => {
        const server = fresh("server");
        const made: string[] = [];
        for (let i = 0; i < 6; i++) {
          made.push((await tasks.create(newTask({ server }))).id);
          await sleep(2);
        }
        const runs = await Promise.all(Array.from({ length: 9 }, (_, i) => tasks.take([server, "x"], `w${i}`)));
        const taken = runs.flatMap((run) => (run ? [run.task.id] : []));
        expect(taken.toSorted()).toEqual(made.toSorted());
        for (const run of runs) await run?.release();
        expect((await tasks.take([server], "me"))?.task.id).toBeDefined();
      });
      it("are taken for the servers that were named only", async () => {
        const task = newTask();
        await tasks.create(task);
        expect(await tasks.take([fresh("server")], "me")).toBeUndefined();
        expect(await tasks.take([], "me")).toBeUndefined();
        await takeTask(tasks, task);
      });
      it("know nothing of a task that was never made", async () => {
        const id = fresh("task");
        expect(await tasks.find(id)).toBeUndefined();
        expect(await tasks.cancel(id)).toBe(false);
        expect(await tasks.answer(id, { a: {} })).toBe(false);
        expect(await tasks.retry(id)).toBe(false);
      });
      it("refuse what cannot be kept, and say why", async () => {
        await expect(tasks.create(newTask({ id: "" }))).rejects.toThrow("The id of a task is a text of 1 to 500");
        await expect(tasks.create(newTask({ server: "s".repeat(501) }))).rejects.toThrow("given 501 characters");
        await expect(tasks.create(newTask({ owner: "a\0b" }))).rejects.toThrow("given one with a NUL");
        await expect(tasks.take(["s"], "")).rejects.toThrow("The holder of a task");
        await expect(tasks.create(newTask({ ttlMs: 0 }))).rejects.toMatchObject({ code: "task" });
        await expect(tasks.create(newTask({ pollIntervalMs: Number.NaN }))).rejects.toMatchObject({ code: "task" });
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        const large = "x".repeat(64 * 1024 * 1024);
        await expect(run.finish({ status: "completed", result: large })).rejects.toMatchObject({ code: "too_large" });
        await expect(run.record("s", [large])).rejects.toThrow("64 MiB");
        await expect(run.record("", [])).rejects.toThrow("The name of a step");
        expect(await status(task.id)).toBe("working");
      });
    });

    describe("calls with a key", () => {
      it("are one task, whoever asks and however many at once", async () => {
        const callKey = { key: fresh("key"), digest: "d" };
        const server = fresh("server");
        const made = await Promise.all(Array.from({ length: 5 }, () => tasks.create(newTask({ server, callKey }))));
        expect(new Set(made.map(({ id }) => id)).size).toBe(1);
        const run = await tasks.take([server], "me");
        expect(await tasks.take([server], "me")).toBeUndefined();
        await run?.finish({ status: "completed", result: 1 });
        expect(await tasks.create(newTask({ server, callKey }))).toMatchObject({ id: run?.task.id, result: 1 });
      });
      it("are refused with another digest", async () => {
        const key = fresh("key");
        await tasks.create(newTask({ callKey: { key, digest: "one" } }));
        await expect(tasks.create(newTask({ callKey: { key, digest: "two" } }))).rejects.toMatchObject({
          name: "ConfigError",
          code: "call_key",
        });
      });
      it("are another task once the first one's time is over", async () => {
        const callKey = { key: fresh("key"), digest: "one" };
        const task = newTask({ callKey, ttlMs: 2_000 });
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await run.finish({ status: "completed", result: 1 });
        await eventually(async () => ((await tasks.find(task.id)) ? undefined : true));
        const next = await tasks.create(newTask({ callKey: { ...callKey, digest: "two" } }));
        expect(next).toMatchObject({ status: "working" });
        expect(next.id).not.toBe(task.id);
      });
    });

    describe("steps", () => {
      it("are there for the next run, by key", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await run.record("a", [1]);
        await run.record("b", []);
        await run.record("a", [{ again: true }]);
        await run.release();
        const next = await takeTask(tasks, task);
        expect([...next.steps].toSorted()).toEqual([
          ["a", [{ again: true }]],
          ["b", []],
        ]);
        expect(next.fence).toBeGreaterThan(run.fence);
      });
      it("are refused from a run that has ended, and from one that was overtaken", async () => {
        const task = newTask();
        await brief.tasks.create(task);
        const late = await takeTask(brief.tasks, task, "late");
        await late.record("a", ["late"]);
        const next = await eventually(() => brief.tasks.take([task.server], "next"));
        expect(next.fence).toBeGreaterThan(late.fence);
        expect(next.steps.get("a")).toEqual(["late"]);
        const lost = { name: "LeaseLostError", code: "lease_lost", message: expect.stringContaining("silent") };
        await expect(late.record("b", [1])).rejects.toMatchObject(lost);
        await expect(late.report({ statusMessage: "late" })).rejects.toMatchObject(lost);
        await expect(late.ask([], 1)).rejects.toMatchObject(lost);
        await expect(late.finish({ status: "completed", result: "late" })).rejects.toMatchObject(lost);
        expect(await late.renew()).toBe(false);
        await late.again(0);
        await late.release();
        await next.record("c", [2]);
        await next.release();
        const last = await takeTask(brief.tasks, task);
        expect([...last.steps.keys()].toSorted()).toEqual(["a", "c"]);
        await last.finish({ status: "completed", result: "last" });
        await expect(last.record("d", [1])).rejects.toThrow("the task has ended meanwhile (completed)");
      });
      it("of a running task are taken up to one by many at once", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await Promise.all(Array.from({ length: 50 }, (_, i) => run.record(`s${i}`, [i])));
        await run.release();
        expect((await takeTask(tasks, task)).steps.size).toBe(50);
      });
    });

    describe("questions", () => {
      const question = (key: string) => ({ key, request: { method: "elicitation/create", params: { key } } });

      it("end the run, are answered bit by bit, and make the task due again", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await run.ask([question("name"), question("sum")], { at: 2 });
        const asking = await tasks.find(task.id);
        expect(asking).toMatchObject({ status: "input_required" });
        expect(asking?.requests).toEqual({ name: question("name").request, sum: question("sum").request });
        await expect(run.record("late", [])).rejects.toMatchObject({ code: "lease_lost" });
        expect(await tasks.take([task.server], "me")).toBeUndefined();
        expect(await tasks.answer(task.id, { other: { action: "accept" }, __proto: {} })).toBe(false);
        expect(await tasks.answer(task.id, { name: { action: "accept" }, other: {} })).toBe(true);
        expect(await tasks.find(task.id)).toMatchObject({
          status: "input_required",
          requests: { sum: question("sum").request },
        });
        expect(await tasks.answer(task.id, { name: { action: "decline" } })).toBe(false);
        expect(await tasks.take([task.server], "me")).toBeUndefined();
        expect(await tasks.answer(task.id, { sum: { action: "cancel" } })).toBe(true);
        expect(await tasks.find(task.id)).toMatchObject({ status: "working", requests: {} });
        const next = await takeTask(tasks, task);
        expect(next.journal).toEqual({ at: 2 });
        expect(Object.fromEntries(next.answers)).toEqual({ name: { action: "accept" }, sum: { action: "cancel" } });
      });
      it("never have the same key on the wire twice", async () => {
        const task = newTask();
        await tasks.create(task);
        const wire: string[] = [];
        for (const keys of [["a", "b"], ["a", "a~2"], ["a", "b", "a~2"], ["a"]]) {
          const run = await takeTask(tasks, task);
          await run.ask(keys.map(question), wire.length);
          const requests = Object.entries((await tasks.find(task.id))?.requests ?? {});
          expect(requests.map(([, request]) => (request as { params: { key: string } }).params.key)).toEqual(keys);
          wire.push(...requests.map(([key]) => key));
          expect(await tasks.answer(task.id, { [wire[0] ?? ""]: {} })).toBe(wire.length === 2); // an old key is not open
          expect(await tasks.answer(task.id, Object.fromEntries(requests.map(([key]) => [key, { key }])))).toBe(true);
        }
        expect(new Set(wire).size).toBe(8);
        expect(wire.slice(0, 2)).toEqual(["a", "b"]);
        const last = await takeTask(tasks, task);
        expect([...last.answers]).toEqual([["a", { key: wire.at(-1) }]]);
        await expect(last.ask([question("c"), question("c")], 1)).rejects.toMatchObject({ code: "ask" });
      });
      it("of one answer each count once when many answer at once", async () => {
        const task = newTask();
        await tasks.create(task);
        await (await takeTask(tasks, task)).ask([question("a"), question("b")], 1);
        const counted = await Promise.all(
          ["a", "b", "a", "b", "a"].map((key, i) => tasks.answer(task.id, { [key]: { from: i } })),
        );
        expect(counted.filter(Boolean)).toHaveLength(2);
        expect((await takeTask(tasks, task)).answers.size).toBe(2);
        expect(await tasks.take([task.server], "twice")).toBeUndefined();
      });
      it("without any of them the task is due at once", async () => {
        const task = newTask();
        await tasks.create(task);
        await (await takeTask(tasks, task)).ask([], "j");
        expect((await takeTask(tasks, task)).journal).toBe("j");
      });
    });

    describe("when cancelled", () => {
      it("end once, and stay so", async () => {
        const task = newTask();
        await tasks.create(task);
        expect(await tasks.cancel(task.id)).toBe(true);
        expect(await tasks.cancel(task.id)).toBe(false);
        expect(await status(task.id)).toBe("cancelled");
        expect(await tasks.take([task.server], "me")).toBeUndefined();
        expect(await tasks.retry(task.id)).toBe(false);
      });
      it("let the run keep what was under way, and nothing else", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        expect(await run.renew()).toBe(true);
        expect(await tasks.cancel(task.id)).toBe(true);
        expect(await run.renew()).toBe(false);
        await run.record("refund", ["happened"]);
        const ended = { code: "lease_lost", message: expect.stringContaining("has ended meanwhile (cancelled)") };
        await expect(run.report({ statusMessage: "on" })).rejects.toMatchObject(ended);
        await run.finish({ status: "completed", result: 1 });
        const found = await tasks.find(task.id);
        expect(found?.status).toBe("cancelled");
        expect(found && "result" in found).toBe(false);
        await expect(run.record("more", [])).rejects.toMatchObject(ended);
      });
      it("refuse a question of the run, and it ends without one", async () => {
        const task = newTask();
        await tasks.create(task);
        const run = await takeTask(tasks, task);
        await tasks.cancel(task.id);
        await expect(run.ask([{ key: "a", request: {} }], 1)).rejects.toMatchObject({ code: "lease_lost" });
        await run.again(0);
        await run.release();
        expect(await status(task.id)).toBe("cancelled");
        expect(await tasks.take([task.server], "me")).toBeUndefined();
      });
      it("take no more answers", async () => {
        const task = newTask();
        await tasks.create(task);
        await (await takeTask(tasks, task)).ask([{ key: "a", request: {} }], 1);
        expect(await tasks.cancel(task.id)).toBe(true);
        expect(await tasks.answer(task.id, { a: {} })).toBe(false);
        expect((await tasks.find(task.id))?.requests).toEqual({});
      });
    });
  });
}
