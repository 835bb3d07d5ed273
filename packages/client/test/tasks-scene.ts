import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeEach } from "vitest";
import { program } from "../../../test/programs.ts";
import type { StdioServerConfig } from "../src/index.ts";
import { type Listening, listen } from "./servers.ts";
import { type Kept, readKept, taskHandler } from "./tasks-server.ts";

const tasksServer = await program("./tasks-server.ts", import.meta.url);

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A server with tasks of its own for each test of a file; call it once at the top. */
export function taskServers() {
  const folder = mkdtempSync(join(tmpdir(), "tenon-tasks-"));
  let server: Listening;
  let file = "";
  let files = 0;
  beforeEach(async () => {
    file = join(folder, `${++files}.json`);
    server = await listen(taskHandler(file));
  });
  afterEach(() => server.kill());
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return {
    get url() {
      return server.url;
    },
    get file() {
      return file;
    },
    get requests() {
      return server.requests;
    },
    kept: (): Kept => readKept(file),
    count: (method: string): number => readKept(file).log.filter((entry) => entry.method === method).length,
    /** @throws after five seconds */
    async until(what: () => boolean): Promise<void> {
      for (let left = 250; !what(); left--) {
        if (left === 0) throw new Error("it did not come to be within 5 s");
        await wait(20);
      }
    },
    /** Ends the server, and starts it again on the same port. */
    async restart(awayMs: number): Promise<void> {
      await server.kill();
      await wait(awayMs);
      server = await listen(taskHandler(file), server.port);
    },
    /** The same server as a child process that speaks over its standard input and output. */
    child: (...args: string[]): StdioServerConfig => ({
      command: process.execPath,
      args: [tasksServer, file, "stdio", ...args],
      env: { TENON_TASKS_SERVER: "1" },
      connectTimeoutMs: 15_000,
    }),
    /** The same server as a process that listens. */
    async process(port = 0): Promise<{ url: string; port: number; kill(): Promise<void> }> {
      return serverProcess(file, port);
    },
  };
}

/** Starts the server as a process of its own. */
export async function serverProcess(
  file: string,
  port = 0,
): Promise<{ url: string; port: number; child: ChildProcess; kill(): Promise<void> }> {
  const child = spawn(process.execPath, [tasksServer, file, String(port)], {
    env: { ...process.env, TENON_TASKS_SERVER: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    url,
    port: Number(new URL(url).port),
    child,
    async kill() {
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}
