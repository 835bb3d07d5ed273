import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError } from "@tenon/core";
import { LeaseLostError, openMemory, type Stores, type TaskRun, type TaskStore } from "@tenon/store";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite } from "@tenon/store/sqlite";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { onPostgres } from "../../store/test/postgres.ts";
import { timelyTasks } from "../src/handler/within.ts";
import { createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import { modern } from "./raw-requests.ts";
import { begin, ended, follow, look, said } from "./tasks.ts";

const servers: TenonServer[] = [];
const opened: Stores[] = [];
let logged: LogEntry[];
beforeEach(() => {
  logged = [];
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await Promise.all(opened.splice(0).map((stores) => stores.close()));
});
const keep = (stores: Stores): Stores => {
  opened.push(stores);
  return stores;
};
function make(store: Stores, name = "replica"): TenonServer {
  const server = createServer({ name, version: "1.0.0", store, logSink: (entry) => void logged.push(entry) });
  server.resource("news://a", {}, () => "a");
  server.tool("plain", {}, () => "");
  servers.push(server);
  return server;
}

/** What a listener of a server hears, as text. */
async function hear(server: TenonServer): Promise<() => string> {
  const notifications = { toolsListChanged: true, resourceSubscriptions: ["news://a"] };
  const raw = modern("subscriptions/listen", { notifications });
  const response = await server.fetch(
    new Request("http://127.0.0.1/mcp", { method: "POST", headers: raw.headers ?? {}, body: String(raw.body) }),
  );
  let text = "";
  void (async () => {
    for await (const chunk of response.body ?? []) text += new TextDecoder().decode(chunk);
  })().catch(() => undefined);
  await vi.waitFor(() => expect(text).toContain("acknowledged"));
  return () => text;
}
const fail = (): never => {
  throw new Error("not there");
};
const count = (text: string, what: string): number => text.split(what).length - 1;

function changes(open: () => Stores): void {
  it("reach the listeners of all replicas, once each, and of no other server", async () => {
    const [one, two] = [make(open()), make(open())];
    const other = make(open(), "other");
    const [here, there, elsewhere] = [await hear(one), await hear(two), await hear(other)];
    await sleep(200); // whoever listens to a database is told when it is ready
    one.notify.resourceUpdated("news://a");
    two.notify.toolsChanged();
    for (const heard of [here, there]) {
      await vi.waitFor(() => {
        expect(count(heard(), "notifications/resources/updated")).toBeGreaterThan(0);
        expect(count(heard(), "notifications/tools/list_changed")).toBeGreaterThan(0);
      }, 5_000);
    }
    await sleep(100);
    for (const heard of [here, there]) expect(count(heard(), "notifications/resources/updated")).toBe(1);
    expect(count(elsewhere(), "notifications/resources/updated")).toBe(0);
  });
}

describe("changes of one server", () => {
  describe("in one process", () => {
    const stores = openMemory();
    changes(() => stores);
  });
  describe("on Postgres", () => {
    onPostgres("changes between replicas", "replicas", (url, schema) => {
      changes(() => keep(openPostgres({ url, schema })));
    });
  });
});

describe("a store that fails", () => {
  /** A bundle whose runs do this when they record. */
  function recording(record: (run: TaskRun, step: string) => Promise<void>): Stores {
    const stores = keep(openMemory({ leaseMs: 150 }));
    const tasks: TaskStore = {
      ...stores.tasks,
      async take(...given) {
        const run = await stores.tasks.take(...given);
        if (!run) return undefined;
        return {
          ...run,
          async record(step, result) {
            await record(run, step);
            await run.record(step, result);
          },
        };
      },
    };
    return { ...stores, tasks };
  }

  it("while it records stops the run before anything else takes effect; another run continues", async () => {
    let broken = true;
    const effects: string[] = [];
    const store = recording(async (_, step) => {
      if (!broken || step !== "b") return;
      broken = false;
      throw new Error("the disk is full");
    });
    const server = make(store).tool("steps", { task: "required" }, async (_, ctx) => {
      for (const step of ["a", "b", "c"]) {
        // an author that goes on whatever happens
        await ctx.step(step, () => void effects.push(step)).catch(() => undefined);
      }
      return effects.join("");
    });
    const done = await follow(server, (await begin(server, "steps")).taskId);
    expect(said(done)).toBe("abbc");
    expect(logged.some(({ message }) => message.includes("could not be recorded"))).toBe(true);
  });

  it("that says another process has the task ends the run without a word of its own", async () => {
    let lost = true;
    const server = make(
      recording(async () => {
        if (!lost) return;
        lost = false;
        throw new LeaseLostError({ key: "k" });
      }),
    ).tool("one", { task: "required" }, (_, ctx) => ctx.step("one", () => "done"));
    const { taskId } = await begin(server, "one");
    await sleep(20);
    expect((await look(server, taskId)).status).toBe("working");
    expect(said(await follow(server, taskId))).toBe("done");
  });

  it("and does not renew the right to a task stops the run in time", async () => {
    const stores = keep(openMemory({ leaseMs: 150 }));
    let mute = true;
    const tasks: TaskStore = {
      ...stores.tasks,
      async take(...given) {
        const run = await stores.tasks.take(...given);
        if (!run || !mute) return run;
        mute = false;
        return { ...run, renew: () => new Promise(() => undefined) };
      },
    };
    const runs: string[] = [];
    const server = make({ ...stores, tasks }).tool("wait", { task: "required" }, async (_, ctx) => {
      runs.push("run");
      if (runs.length > 1) return "done";
      await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve(), { once: true }));
      return "too late";
    });
    expect(said(await follow(server, (await begin(server, "wait")).taskId))).toBe("done");
    expect(runs).toHaveLength(2);
  });

  it("never takes what a step gave ends the task at once: its effect is not repeated", async () => {
    let effects = 0;
    const server = make(
      recording(async () => {
        throw new ConfigError("too large", { code: "too_large" });
      }),
    ).tool("large", { task: "required" }, (_, ctx) => ctx.step("large", () => void effects++));
    const done = await follow(server, (await begin(server, "large")).taskId);
    expect([done.status, effects]).toEqual(["failed", 1]);
  });

  it("never takes what a task asks ends it, not the process", async () => {
    const stores = keep(openMemory());
    const take: TaskStore["take"] = async (...given) => {
      const run = await stores.tasks.take(...given);
      const ask = async (): Promise<never> => {
        throw new ConfigError("too large", { code: "too_large" });
      };
      return run && { ...run, ask };
    };
    const server = make({ ...stores, tasks: { ...stores.tasks, take } });
    server.tool("asks", { task: "required" }, async (_, ctx) => {
      await ctx.elicit("Which?", ["a", "b"]);
      return "";
    });
    expect((await follow(server, (await begin(server, "asks")).taskId)).status).toBe("failed");
  });

  it("does not get its steps for nothing: a key that it could not keep is refused before the effect", async () => {
    const keys = ["", "x".repeat(501), "a\0b", "a\ud800"];
    let effects = 0;
    const server = make(keep(openMemory())).tool("keys", { task: "required" }, async (_, ctx) => {
      const codes: unknown[] = [];
      for (const key of keys) {
        await ctx.step(key, () => void effects++).catch(({ code }) => codes.push(code));
      }
      await ctx.step("x".repeat(500), () => undefined);
      return codes.join();
    });
    expect(said(await follow(server, (await begin(server, "keys")).taskId))).toBe(keys.map(() => "step_key").join());
    expect(effects).toBe(0);
  });

  it("that cannot record a step for long has it tried again with pauses, and not for ever", async () => {
    let effects = 0;
    const server = make(
      recording(async () => {
        throw new Error("the disk is full");
      }),
    ).tool("full", { task: "required" }, (_, ctx) => ctx.step("one", () => void effects++));
    await begin(server, "full");
    await sleep(900);
    expect(effects).toBeGreaterThan(0);
    expect(effects).toBeLessThan(4);
  });

  it("has an end for each of its operations", async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const one = { ...openMemory().tasks };
    const names = ["create", "find", "answer", "cancel", "take", "list", "count", "retry", "sweep"] as const;
    const hung = timelyTasks({ ...one, ...Object.fromEntries(names.map((name) => [name, never])) } as TaskStore, 30);
    for (const name of names) {
      const operation = hung[name] as (...given: unknown[]) => Promise<unknown>;
      await expect(operation("x", {}, "y")).rejects.toMatchObject({ code: "store_timeout" });
    }
    const run = { task: {}, steps: new Map(), answers: new Map(), journal: undefined, fence: 1 };
    const parts = ["renew", "record", "report", "ask", "finish", "again", "release"] as const;
    const stuck = { ...run, ...Object.fromEntries(parts.map((name) => [name, never])) } as unknown as TaskRun;
    const taken = await timelyTasks({ ...one, take: async () => stuck }, 30).take([], "");
    for (const name of parts) {
      const operation = taken?.[name] as (...given: unknown[]) => Promise<unknown>;
      await expect(operation("x", [])).rejects.toMatchObject({ code: "store_timeout" });
    }
  });
});

describe("a process that stood still for longer than its lease", () => {
  it("takes no step of a task that another one has by then", async () => {
    const stores = keep(openMemory({ leaseMs: 150 }));
    const effects: string[] = [];
    const server = make(stores).tool("slow", { task: "required" }, async (_, ctx) => {
      const isFirst = effects.push("run") === 1;
      if (isFirst) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300); // as SIGSTOP and SIGCONT
        await stores.tasks.take([server.name], "another process");
      }
      await ctx.step("effect", () => void effects.push("effect"));
      return "";
    });
    await follow(server, (await begin(server, "slow")).taskId);
    expect(effects).toEqual(["run", "run", "effect"]);
  });

  it("goes on with a task that nobody else took", async () => {
    const stores = keep(openMemory({ leaseMs: 150 }));
    const effects: string[] = [];
    const server = make(stores).tool("slow", { task: "required" }, async (_, ctx) => {
      effects.push("run");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      await ctx.step("effect", () => void effects.push("effect"));
      return "";
    });
    await follow(server, (await begin(server, "slow")).taskId);
    expect(effects).toEqual(["run", "effect"]);
  });
});

describe("a server that closes", () => {
  it("hands its tasks back, and a replica goes on after the last finished step", async () => {
    const stores = keep(openMemory());
    const effects: string[] = [];
    const tool = (server: TenonServer): TenonServer =>
      server.tool("long", { task: "optional" }, async (_, ctx) => {
        await ctx.step("first", () => void effects.push("first"));
        if (server === one) await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        await ctx.step("second", () => void effects.push("second"));
        return server === one ? "one" : "two";
      });
    const one = make(stores);
    const two = make(stores);
    tool(one);
    const { taskId } = await begin(one, "long");
    while (effects.length === 0) await sleep(5);
    await one.close();
    tool(two);
    const done = await follow(two, taskId);
    expect([said(done), effects]).toEqual(["two", ["first", "second"]]);
  });

  it("in the middle of ten thousand steps loses none and repeats none", async () => {
    const stores = keep(openMemory());
    const steps = 10_000;
    let done = 0;
    const batch = (server: TenonServer): TenonServer =>
      server.tool("batch", { task: "required" }, async (_, ctx) => {
        for (let i = 0; i < steps; i++) {
          await ctx.step(`order ${i}`, () => {
            done += 1;
          });
          if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve)); // as what works for real does
          await ctx.progress(i + 1, steps);
        }
        return steps;
      });
    let server = batch(make(stores));
    const { taskId } = await begin(server, "batch");
    for (const stop of [2_000, 7_000]) {
      while (done < stop) await sleep(1);
      const before = server;
      server = batch(make(stores));
      await before.close();
      expect(done).toBeLessThan(steps);
      await look(server, taskId);
    }
    const task = await follow(server, taskId);
    expect([said(task), done]).toEqual([String(steps), steps]);
    expect(task._meta?.["dev.tenon/progress"]).toEqual({ progress: steps, total: steps });
  });

  it("on SQLite leaves them to the next process with the same file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tenon-tasks-"));
    const path = join(folder, "t.db");
    const first = openSqlite({ path });
    const one = createServer({ name: "s", version: "1", store: first, tasks: { concurrency: 0 } });
    one.tool("add", { task: "optional" }, () => "one");
    const { taskId } = await begin(one, "add");
    await one.close();
    await first.close();
    const two = make(keep(openSqlite({ path })), "s").tool("add", { task: "optional" }, () => "two");
    expect(said(await follow(two, taskId))).toBe("two");
    rmSync(folder, { recursive: true, force: true });
  });
});

describe("a process without the tool", () => {
  it("does its own tasks meanwhile, however many of others wait", async () => {
    const stores = keep(openSqlite({ path: ":memory:" }));
    const server = make(stores).tool("own", { task: "required" }, () => "done");
    for (let i = 0; i < 40; i++) {
      const id = `task_${String(i).padStart(32, "0")}`;
      const about = { server: server.name, owner: "o", call: {}, ttlMs: null, pollIntervalMs: 1_000 };
      await stores.tasks.create({ ...about, id, tool: "removed" });
    }
    const { taskId } = await begin(server, "own");
    expect(said(await follow(server, taskId, ended, {}, 5_000))).toBe("done");
    expect(logged.filter(({ message }) => message.includes("left to others"))).toHaveLength(1);
  });
  it("leaves the task to those that have it, and counts nothing against it", async () => {
    const stores = keep(openMemory());
    const old = make(stores).tool("other", { task: "optional" }, () => "");
    const id = `task_${"B".repeat(32)}`;
    const { taskId } = await begin(old, "other", {}, { idempotencyKey: "k" });
    await follow(old, taskId);
    const [record] = await stores.tasks.list();
    await stores.tasks.create({ ...(record ?? fail()), id, tool: "new" });
    await vi.waitFor(() => expect(logged.map(({ message }) => message).join()).toContain("left to others"), 3_000);
    make(stores).tool("new", { task: "optional" }, () => "done");
    const fresh = servers.at(-1) ?? fail();
    await look(fresh, id); // it serves from here on
    await old.close();
    expect(said(await follow(fresh, id))).toBe("done");
    expect((await stores.tasks.find(id))?.fruitless).toBe(0);
  });
});
