import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Stores, TaskRecord } from "@tenon/store";
import { openSqlite } from "@tenon/store/sqlite";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { main, tenon } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-cli-tasks-"));
const file = join(folder, "tenon.sqlite");
const module = fileURLToPath(new URL("./task-server.ts", import.meta.url));
let stores: Stores;

beforeAll(() => {
  stores = openSqlite({ path: file });
});
afterAll(async () => {
  await stores.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A task as the server of `task-server.ts` makes it, asked for by its own `fetch`. */
async function begin(tool: string, args: object = {}): Promise<string> {
  process.env.TASKS_FILE = file;
  const { default: server } = await import("./task-server.ts");
  delete process.env.TASKS_FILE;
  const key = "io.modelcontextprotocol/";
  const response = await server.fetch(
    new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          name: tool,
          arguments: args,
          _meta: {
            [`${key}protocolVersion`]: "2026-07-28",
            [`${key}clientInfo`]: { name: "test", version: "1.0.0" },
            [`${key}clientCapabilities`]: { elicitation: { form: {} }, extensions: { [`${key}tasks`]: {} } },
          },
        },
      }),
    }),
  );
  const { result } = (await response.json()) as { result: { taskId: string } }; // a task: all of its tools ask for one
  return result.taskId;
}

/** Starts `tenon worker` and waits until it works. */
async function worker(...args: readonly string[]) {
  const child = spawn(process.execPath, [main, "worker", module, ...args], {
    env: { ...process.env, TASKS_FILE: file },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(child, "exit");
  let said = "";
  child.stderr.on("data", (part) => {
    said += part;
  });
  await vi.waitFor(() => expect(said).toContain("runs tasks of jobs"), { timeout: 30_000 });
  return {
    /** What it wrote to stderr. */
    said: () => said,
    async stop(signal: NodeJS.Signals): Promise<number | null> {
      child.kill(signal);
      const [code] = await ended;
      return code;
    },
  };
}

const ended = (id: string): Promise<TaskRecord> =>
  vi.waitFor(
    async () => {
      const task = await stores.tasks.find(id);
      if (task?.status !== "completed" && task?.status !== "failed") throw new Error(`it is ${task?.status}`);
      return task;
    },
    { timeout: 30_000, interval: 50 },
  );

describe("tenon worker", () => {
  it("runs the tasks of a TypeScript module's server, and ends by a signal", async () => {
    const id = await begin("double", { n: 21 });
    const running = await worker("--concurrency", "2");
    expect(await ended(id)).toMatchObject({ status: "completed", result: { content: [{ text: "42" }] } });
    const later = await begin("double", { n: 4 });
    expect(await ended(later)).toMatchObject({ result: { content: [{ text: "8" }] } });
    expect(await running.stop("SIGTERM")).toBe(0);
  });

  it("tells its numbers on an admin port of its own", async () => {
    const running = await worker("--admin-port", "0");
    const [, admin = ""] = /admin (http:\S+)/.exec(running.said()) ?? [];
    expect(await (await fetch(`${admin}/metrics`)).text()).toMatch(
      /^tenon_tasks\{server="jobs",state="completed"\} \d+$/m,
    );
    expect(await running.stop("SIGTERM")).toBe(0);
  });

  it.each([
    ["there is no missing.ts", "missing.ts", undefined],
    ["has no server as its default export", "other.mjs", "export default { work: 1 };"],
    ["cannot be loaded: broken", "broken.mjs", 'throw new Error("broken");'],
  ])("says that %s", async (why, name, source) => {
    if (source !== undefined) writeFileSync(join(folder, name), source);
    const { code, stderr } = await tenon(["worker", name], { cwd: folder });
    expect(code).toBe(1);
    expect(stderr.split("\n")).toHaveLength(4);
    expect(stderr).toContain(why);
  });
});

describe("tenon tasks", () => {
  const data = ["--data", file];

  it("shows what waits for a person, and cancels it once", async () => {
    const running = await worker();
    const id = await begin("ask");
    await vi.waitFor(async () => expect((await stores.tasks.find(id))?.status).toBe("input_required"), {
      timeout: 30_000,
    });
    await running.stop("SIGTERM");
    const listed = await tenon(["tasks", "list", "--status", "input_required", ...data], { cwd: folder });
    expect(listed.stdout).toMatch(new RegExp(`^${id}  jobs/ask  input_required  \\S+Z  1 open question\n`));
    const json = await tenon(["tasks", "show", id, "--json", "--data", folder], { cwd: folder });
    expect(JSON.parse(json.stdout)).toMatchObject({ id, tool: "ask", status: "input_required" });
    expect((await tenon(["tasks", "cancel", id, ...data], { cwd: folder })).stdout).toBe("cancelled\n");
    const again = await tenon(["tasks", "cancel", id, ...data], { cwd: folder });
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toContain("it has ended: cancelled");
  });

  it("shows what was given up on, and sets only that going again", async () => {
    const running = await worker();
    const id = await begin("fail");
    expect(await ended(id)).toMatchObject({ status: "failed", dead: true });
    const fine = await begin("double", { n: 1 });
    await ended(fine);
    await running.stop("SIGTERM");
    const listed = await tenon(["tasks", "list", "--dead", "--json", ...data], { cwd: folder });
    expect(
      listed.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    ).toEqual([id]);
    expect(listed.stdout).not.toContain("the disk is on fire");
    const shown = await tenon(["tasks", "show", id, ...data], { cwd: folder });
    expect(shown.stdout).toContain("failed (given up)");
    expect(shown.stdout, "a count of runs that leaves the last one out").not.toContain("runs without a step");
    expect((await tenon(["tasks", "retry", fine, ...data], { cwd: folder })).stderr).toContain("this one is completed");
    expect(await tenon(["tasks", "retry", id, ...data], { cwd: folder })).toMatchObject({
      code: 0,
      stdout: "working again, from its last finished step\n",
    });
    expect((await stores.tasks.find(id))?.status).toBe("working");
  });

  it("says where it looked when there is nothing, and makes nothing there", async () => {
    const { code, stderr } = await tenon(["tasks", "list", "--data", "nowhere"], { cwd: folder });
    expect(code).toBe(1);
    expect(stderr).toContain("there is no nowhere/tenon.sqlite");
    const unknown = await tenon(["tasks", "show", "nobody", ...data], { cwd: folder });
    expect(unknown.stderr).toContain("there is no task nobody");
  });
});
