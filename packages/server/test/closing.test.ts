import { spawn as spawnProcess } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import type { TenonServer } from "../src/index.ts";
import { envelope, legacy, modern, overSocket } from "./raw-requests.ts";
import { effects, shop } from "./servers.ts";

const loggingServer = await program("./tasks-stdio.ts", import.meta.url);
const stdioServer = await program("./stdio-server.ts", import.meta.url);
let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = shop();
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

describe("closing", () => {
  it("lets running answers finish and ends streams", async () => {
    const brief = shop();
    let running = 0;
    brief.tool("brief", {}, () => {
      running += 1;
      return new Promise((resolve) => setTimeout(() => resolve("done"), 300));
    });
    const { url: at } = await brief.listen({ port: 0 });
    const calls = [modern("tools/call", { name: "brief" }), legacy("tools/call", { name: "brief" })].map((raw) =>
      overSocket(at, raw),
    );
    const direct = brief.fetch(
      new Request("http://127.0.0.1/mcp", {
        method: "POST",
        headers: modern("tools/call", { name: "brief" }).headers ?? {},
        body: modern("tools/call", { name: "brief" }).body ?? "",
      }),
    );
    await expect.poll(() => running, { interval: 5 }).toBe(3);
    const begin = Date.now();
    await brief.close();
    expect(Date.now() - begin).toBeLessThan(1_500);
    for (const { messages } of await Promise.all(calls)) {
      expect(messages).toMatchObject([{ result: { content: [{ text: "done" }] } }]);
    }
    expect(await (await direct).json()).toMatchObject({ result: { content: [{ text: "done" }] } });
  });
  it("on stdio the end of the input lets running calls finish, then the process ends", async () => {
    const child = spawnProcess(process.execPath, [stdioServer], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    let out = "";
    child.stdout.on("data", (part) => {
      out += part;
    });
    const params = { name: "brief", _meta: envelope() };
    child.stdin.end(`${JSON.stringify({ jsonrpc: "2.0", id: 5, method: "tools/call", params })}\n`);
    const code = await new Promise((resolve) => child.once("exit", resolve));
    expect(JSON.parse(out)).toMatchObject({ id: 5, result: { content: [{ text: "done" }] } });
    expect(code).toBe(0);
  });
  it("on stdio a client that closed only its reading end has left: the process ends cleanly at its next answer", async () => {
    const child = spawnProcess(process.execPath, [stdioServer], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.stdin.on("error", () => undefined); // it may be gone before the last write
    const ask = (id: number): boolean =>
      child.stdin.write(
        `${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "brief", _meta: envelope() } })}\n`,
      );
    ask(1);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.stdout.destroy();
    ask(2);
    ask(3);
    expect(await exited).toBe(0);
  });
  it("on stdio a client that does not read the log takes no answer away", async () => {
    const child = spawnProcess(process.execPath, [loggingServer], { stdio: ["pipe", "pipe", "pipe"] });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.stdin.on("error", () => undefined); // a server that ended says so below
    child.stderr.destroy();
    let out = "";
    child.stdout.on("data", (part) => {
      out += part;
    });
    for (const id of [1, 2, 3]) {
      const params = { name: "fail", _meta: envelope() }; // what it failed with goes to the log
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`);
      await Promise.race([exited, new Promise((resolve) => child.stdout.once("data", resolve))]);
    }
    child.stdin.end();
    expect(await exited).toBe(0);
    expect(out.trim().split("\n")).toHaveLength(3);
  });
  it.each(["SIGTERM", "SIGINT"] as const)("on stdio %s ends the process cleanly", async (signal) => {
    const child = spawnProcess(process.execPath, [stdioServer], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    child.stdin.write(
      `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: envelope() } })}\n`,
    );
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.kill(signal);
    expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(0);
  });
  it("tells a handler when its client leaves, and writes nothing then", async () => {
    effects.length = 0;
    const leaving = new AbortController();
    const call = overSocket(url, modern("tools/call", { name: "wait" }), leaving.signal);
    await expect.poll(() => effects).toEqual(["waiting"]);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => effects).toEqual(["waiting", "aborted"]);
  });
});
