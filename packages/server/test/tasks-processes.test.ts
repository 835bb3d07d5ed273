import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import { onPostgres } from "../../store/test/postgres.ts";
import { value } from "./ask.ts";
import { type Asked, answer, asks, begin, ended, follow, look, request, said } from "./tasks.ts";

const entry = await program("./tasks-process.ts", import.meta.url);

/** A process that shares tasks, and what it said. */
class Process {
  readonly child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #waiting = new Set<() => void>();
  #over = false;

  constructor(how: string, folder: string, env: Record<string, string>) {
    this.child = spawn(process.execPath, [entry, how, folder], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    this.child.once("exit", () => {
      this.#over = true;
      this.#wake();
    });
  }

  /** The first line that fits. */
  async said(fits: RegExp): Promise<string> {
    for (;;) {
      const line = this.#lines.find((one) => fits.test(one));
      if (line !== undefined) return line;
      if (this.#over) throw new Error(`it ended, and had said: ${this.#lines.join(", ")}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** What it serves, as a test asks for it. */
  async server(): Promise<Asked> {
    const url = (await this.said(/^ready http/)).slice("ready ".length);
    return {
      async fetch(request) {
        const headers = new Headers(request.headers);
        headers.delete("host");
        return fetch(url, { method: "POST", headers, body: await request.text() });
      },
    };
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.#over) return;
    const gone = once(this.child, "exit");
    this.child.kill(signal);
    await gone;
  }
}

function tests(env: Record<string, string>): void {
  let folder: string;
  const running: Process[] = [];
  const start = (how: "serve" | "lazy" | "work"): Process => {
    const one = new Process(how, folder, env);
    running.push(one);
    return one;
  };
  const effects = (): string[] =>
    existsSync(join(folder, "effects")) ? readFileSync(join(folder, "effects"), "utf8").trim().split("\n") : [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tenon-tasks-"));
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.end("SIGKILL")));
    rmSync(folder, { recursive: true, force: true });
  });

  it("survive kill -9 between steps and while a question waits: another process goes on, each step once", async () => {
    const first = start("serve");
    const { taskId } = await begin(await first.server(), "batch", { n: 5, pauseMs: 250 });
    await first.said(/^done 3/);
    await first.end("SIGKILL");
    expect(effects()).toHaveLength(3);
    const second = start("serve");
    const open = await follow(await second.server(), taskId, asks);
    await second.end("SIGKILL");
    const third = start("serve");
    const server = await third.server();
    expect((await look(server, taskId)).inputRequests).toEqual(open.inputRequests);
    await answer(server, open, { "Send them?": value(true) });
    const done = await follow(server, taskId);
    expect(JSON.parse(said(done))).toEqual({ sent: "accept", by: third.child.pid });
    const lines = effects();
    expect(lines.map((line) => line.split(" ")[0])).toEqual(["1", "2", "3", "4", "5", "send"]);
    expect(new Set(lines).size).toBe(6);
  }, 120_000);

  it("are handed back by a process that stops, and go on elsewhere at once", async () => {
    const first = start("serve");
    const server = await first.server();
    const { taskId } = await begin(server, "batch", { n: 4, pauseMs: 300 });
    const { taskId: hanging } = await begin(server, "hang");
    await Promise.all([first.said(/^done 1/), first.said(/^hanging/)]);
    const began = Date.now();
    await first.end("SIGTERM");
    expect(Date.now() - began).toBeLessThan(6_000);
    const second = start("serve");
    await second.said(/^hanging/);
    await follow(await second.server(), taskId, asks);
    expect(effects().filter((line) => line === "first")).toHaveLength(1);
    expect(effects().map((line) => line.split(" ")[0])).toEqual(expect.arrayContaining(["1", "2", "3", "4"]));
    expect(effects()).toHaveLength(5);
    expect((await look(await second.server(), hanging)).status).toBe("working");
  }, 120_000);

  it("are run by processes that only work, where those that serve leave them alone", async () => {
    const serving = start("lazy");
    const server = await serving.server();
    const { taskId } = await begin(server, "batch", { n: 2, pauseMs: 1 });
    const working = start("work");
    await working.said(/^ready/);
    const open = await follow(server, taskId, asks);
    await answer(server, open, { "Send them?": { action: "cancel" } });
    expect(JSON.parse(said(await follow(server, taskId)))).toEqual({ sent: "cancel", by: working.child.pid });
    const { taskId: hanging } = await begin(server, "hang");
    await working.said(/^hanging/);
    await request(server, "tasks/cancel", { taskId: hanging }); // here, and the handler there hears of it
    await working.said(/^aborted/);
    await working.end("SIGTERM");
    expect(working.child.exitCode).toBe(0);
  }, 120_000);

  it("that kill every process which runs them are given up", async () => {
    const serving = start("lazy");
    const server = await serving.server();
    const { taskId } = await begin(server, "poison");
    for (let i = 0; i < 6; i++) start("work");
    await follow(server, taskId, ended, {}, 90_000);
    expect(effects()).toHaveLength(5);
    expect(await look(server, taskId)).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("was given up: 5 runs ended without a finished step") },
    });
  }, 120_000);
}

describe("tasks of several processes on SQLite", () => tests({}));

describe("tasks of several processes on Postgres", () => {
  onPostgres("tasks of a server", "server_tasks", (url, schema) => {
    tests({ TASKS_DATABASE_URL: url, TASKS_SCHEMA: schema });
  });
});
