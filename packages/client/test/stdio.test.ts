import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type Client, createClient, type EventSource, renderText } from "../src/index.ts";
import type { ToolResult } from "../src/types/calls.ts";
import { child } from "./child.ts";
import { isAlive } from "./servers.ts";

const clients: Client[] = [];
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));
const textOf = (result: ToolResult) => renderText(result.content);

function open(args: string[], more: object = {}) {
  const file = join(mkdtempSync(join(tmpdir(), "tenon-")), "pids");
  const client = createClient({ servers: { s: { ...child(...args), env: { PID_FILE: file } } }, ...more });
  clients.push(client);
  const pids = () => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : []);
  return { client, pids };
}

describe.each([
  ["modern", []],
  ["legacy", ["legacy"]],
] as const)("a %s server as a child process", (era, args) => {
  it("is started once, works, and is gone after close", async () => {
    const { client, pids } = open([...args]);
    await Promise.all([client.listTools(), client.callTool("s", "echo", { text: "x" })]);
    expect(client.servers()).toMatchObject([{ health: "up", era }]);
    expect(pids()).toHaveLength(1);
    const began = Date.now();
    await client.close();
    expect(Date.now() - began).toBeLessThan(2_000);
    expect(pids().some(isAlive)).toBe(false);
  });

  it("that dies during a call fails that call and works on the next", async () => {
    const { client, pids } = open([...args]);
    await client.listTools();
    await expect(client.callTool("s", "die")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(textOf(await client.callTool("s", "echo", { text: "again" }))).toBe("again");
    expect(pids()).toHaveLength(2);
  });

  it("that is killed between two calls is replaced without anybody noticing", async () => {
    const { client, pids } = open([...args]);
    await client.listTools();
    process.kill(pids()[0] ?? 0, "SIGKILL");
    await expect.poll(() => client.servers()).toMatchObject([{ health: "down", error: { code: "lost" } }]);
    expect(textOf(await client.callTool("s", "echo", { text: "again" }))).toBe("again");
  });

  it("has progress, logs and questions attributed to the running call", async () => {
    const seen: EventSource[] = [];
    const { client } = open([...args], {
      events: {
        onProgress: (_: unknown, source: EventSource) => seen.push(source),
        onLog: (_: unknown, source: EventSource) => seen.push(source),
      },
      elicitation: (_: unknown, source: EventSource) => {
        seen.push(source);
        return { action: "accept", content: { ok: false } };
      },
    });
    await client.callTool("s", "work", { label: "a", steps: 2, ms: 5 });
    expect(textOf(await client.callTool("s", "ask"))).toBe("accept:false");
    expect(seen.map(({ tool }) => tool)).toEqual(["work", "work", "work", "work", "ask"]);
  });

  it("gets a safe environment and what is configured, nothing else", async () => {
    process.env.TENON_TEST_SECRET = "hidden";
    const { client } = open([...args]);
    const env = JSON.parse(textOf(await client.callTool("s", "env")));
    expect(env.TENON_TEST_SECRET).toBeUndefined();
    expect(env.PATH).toBe(process.env.PATH);
    expect(env.PID_FILE).toBeDefined();
  });
});

describe("a server of the older revision", () => {
  it("that exits when asked for the newer one is started anew, and not asked again soon", async () => {
    const { client, pids } = open(["legacy", "exits"]);
    expect(textOf(await client.callTool("s", "echo", { text: "x" }))).toBe("x");
    expect(client.servers()).toMatchObject([{ health: "up", era: "legacy" }]);
    expect(pids()).toHaveLength(2);
    await client.callTool("s", "die").catch(() => {});
    expect(textOf(await client.callTool("s", "echo", { text: "y" }))).toBe("y");
    expect(pids()).toHaveLength(3);
  });

  it("that stays silent when asked for the newer one works within the budget", async () => {
    const config = { ...child("legacy", "silent"), connectTimeoutMs: 5_000 };
    const client = createClient({ servers: { s: config } });
    clients.push(client);
    expect(textOf(await client.callTool("s", "echo", { text: "x" }))).toBe("x");
  });
});

describe("a child process that misbehaves", () => {
  it("is killed when it ignores both end of input and SIGTERM", async () => {
    const { client, pids } = open(["stubborn"]);
    await client.listTools();
    const began = Date.now();
    await client.close();
    expect(Date.now() - began).toBeLessThan(2_000);
    expect(pids().some(isAlive)).toBe(false);
  });

  it("is unreachable with its last words when it exits at once", async () => {
    const { client } = open(["crash"]);
    await expect(client.callTool("s", "echo")).rejects.toMatchObject({ code: "unreachable", maybeExecuted: false });
    expect(client.servers()[0]?.error?.message).toContain("cannot read the database");
  });

  it("is heard to its last word, also one that comes in halves and has no end of the line", async () => {
    const script = `
      const words = Buffer.from("数据库坏了");
      process.stderr.write(words.subarray(0, 4));
      setTimeout(() => process.stderr.write(words.subarray(4), () => process.exit(1)), 100);
      process.stdin.resume();
    `;
    const heard: unknown[] = [];
    const client = createClient({
      servers: { s: { command: process.execPath, args: ["-e", script] } },
      events: { onLog: ({ data }) => heard.push(data) },
    });
    clients.push(client);
    await expect(client.callTool("s", "echo")).rejects.toMatchObject({ code: "unreachable" });
    await expect.poll(() => heard, { timeout: 10_000 }).toContain("数据库坏了");
  });

  it("is unreachable when the command does not exist", async () => {
    const client = createClient({ servers: { s: { command: "no-such-command-here" } } });
    clients.push(client);
    await expect(client.callTool("s", "echo")).rejects.toThrow(/"s" cannot be reached at no-such-command-here.*ENOENT/);
  });

  it("leaves no child when the client is closed while it starts", async () => {
    const { client, pids } = open([]);
    const listing = client.listTools().catch((error: unknown) => error);
    // as soon as the process says who it is, it is still far from its first answer
    await expect.poll(() => pids().length, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0);
    await client.close();
    await listing;
    expect(pids().some(isAlive)).toBe(false);
  });
});

describe("parallel calls over one pipe", () => {
  it("keep their progress apart; a log that cannot be told apart names the server only", async () => {
    const progress: string[] = [];
    const logs: EventSource[] = [];
    const { client } = open([], { events: { onLog: (_: unknown, source: EventSource) => logs.push(source) } });
    await client.listTools();
    const run = (label: string) =>
      client.callTool(
        "s",
        "work",
        { label, steps: 3, ms: 30 },
        { onProgress: (e) => progress.push(`${label}:${e.message}`) },
      );
    await Promise.all([run("a"), run("b")]);
    expect(progress.toSorted()).toEqual(["a:a", "a:a", "a:a", "b:b", "b:b", "b:b"]);
    expect(logs[0]).toEqual({ server: "s" });
  });
});
