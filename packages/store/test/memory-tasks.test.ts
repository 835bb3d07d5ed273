import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openMemory, TasksFullError } from "../src/index.ts";
import { newTask, takeTask } from "./task-help.ts";

describe("tasks in memory", () => {
  it("are bounded: ended ones go first, and full of running ones another is refused and can be tried again", async () => {
    await using stores = openMemory({ maxTasks: 3 });
    const { tasks } = stores;
    const [first, second, third, fourth] = [newTask(), newTask(), newTask(), newTask()];
    for (const task of [first, second, third]) await tasks.create(task);
    const run = await takeTask(tasks, first);
    const full = await tasks.create(fourth).catch((error: unknown) => error);
    expect(full).toBeInstanceOf(TasksFullError);
    expect(full).toMatchObject({ code: "tasks_full", retryable: true, maybeExecuted: false });
    expect(String(full)).toContain("3 tasks");
    await tasks.cancel(first.id);
    await expect(tasks.create(fourth)).rejects.toBeInstanceOf(TasksFullError); // its run may still have last words
    await run.release();
    await tasks.create(fourth);
    expect(await tasks.find(first.id)).toBeUndefined();
    for (const task of [second, third, fourth]) expect((await tasks.find(task.id))?.status).toBe("working");
  });
  it("are bounded in bytes, their steps too", async () => {
    await using stores = openMemory({ maxBytes: 10_000 });
    const task = newTask();
    await stores.tasks.create(task);
    const run = await takeTask(stores.tasks, task);
    await run.record("large", ["x".repeat(12_000)]); // work that runs is never refused
    await expect(stores.tasks.create(newTask())).rejects.toMatchObject({ code: "tasks_full" });
    await run.finish({ status: "completed", result: 1 });
    await stores.tasks.create(newTask());
    expect((await stores.tasks.find(task.id))?.result).toBe(1); // without its steps it fits
  });
  it("are bounded in bytes, the answers of clients too", async () => {
    await using stores = openMemory({ maxBytes: 10_000 });
    const task = newTask();
    await stores.tasks.create(task);
    const keys = ["a", "b", "c"];
    await (await takeTask(stores.tasks, task)).ask(
      keys.map((key) => ({ key, request: {} })),
      {},
    );
    expect(await stores.tasks.answer(task.id, { a: { text: "x".repeat(6_000) } })).toBe(true);
    const large = stores.tasks.answer(task.id, { b: { text: "x".repeat(6_000) } });
    await expect(large).rejects.toMatchObject({ code: "tasks_full", retryable: true });
    expect(Object.keys((await stores.tasks.find(task.id))?.requests ?? {})).toEqual(["b", "c"]);
    expect(await stores.tasks.answer(task.id, { b: {}, c: {} })).toBe(true);
    const run = await takeTask(stores.tasks, task);
    expect([...run.answers.keys()]).toEqual(keys);
    await run.ask([], {}); // they are in the journal, or nobody asks for them any more
    await stores.tasks.create(newTask({ call: { text: "x".repeat(8_000) } }));
  });
  it("refuse limits that are none", () => {
    expect(() => openMemory({ maxTasks: 0 })).toThrow("maxTasks must be positive, got 0");
    expect(() => openMemory({ maxTask: 1 } as never)).toThrow('did you mean "maxTasks"?');
  });
});

it("a sweep of all stores says what it did in each", async () => {
  await using stores = openMemory();
  const { lease } = await stores.leases.acquire("kept for a day", "me", 1);
  await stores.leases.release(lease);
  await stores.outcomes.putBlob("old", "text", 1);
  await stores.tasks.create(newTask({ ttlMs: 1 }));
  await sleep(10);
  const none = { requeued: 0, ended: 0, deleted: 0 };
  expect(await stores.sweep()).toEqual({ outcomes: 1, leases: 0, tasks: { ...none, ended: 1 }, contexts: 0, audit: 0 });
  expect(await stores.sweep()).toEqual({
    outcomes: 0,
    leases: 0,
    tasks: { ...none, deleted: 1 },
    contexts: 0,
    audit: 0,
  });
});
