import { setTimeout as sleep } from "node:timers/promises";
import { ProtocolError } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type ServerOptions, type TenonServer, ToolError } from "../src/index.ts";
import { value } from "./ask.ts";
import { answer, asks, begin, ended, follow, look, request, said } from "./tasks.ts";

let effects: string[];
const servers: TenonServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

function make(options: Partial<ServerOptions> = {}): TenonServer {
  const server = createServer({ name: "tasks", version: "1.0.0", logSink: () => undefined, ...options });
  server.tool("add", { input: z.object({ a: z.number(), b: z.number() }), task: "optional" }, ({ a, b }) => a + b);
  server.tool("pay", { input: z.object({ n: z.number() }), task: "required" }, async ({ n }, ctx) => {
    await ctx.step("reserve", () => void effects.push("reserve"));
    const sure = await ctx.elicit(`Pay ${n}?`, z.boolean());
    if (sure.action !== "accept" || !sure.data) return "not paid";
    const id = await ctx.step("pay", (key) => {
      effects.push(`pay ${n}`);
      return key;
    });
    return { paid: n, id, task: ctx.task?.id };
  });
  servers.push(server);
  return server;
}

let server: TenonServer;
beforeEach(() => {
  effects = [];
  server = make();
});

describe("a tool with tasks", () => {
  it("gives a client that knows tasks a handle, and its result when it is there", async () => {
    const task = await begin(server, "add", { a: 1, b: 2 });
    expect(task).toMatchObject({ resultType: "task", status: "working", ttlMs: 604_800_000, pollIntervalMs: 1_000 });
    const done = await follow(server, task.taskId);
    expect(done).toMatchObject({ resultType: "complete", status: "completed", result: { resultType: "complete" } });
    expect(said(done)).toBe("3");
  });
  it("asks in the task, and goes on after the last finished step", async () => {
    const { taskId } = await begin(server, "pay", { n: 5 });
    const asking = await follow(server, taskId, asks);
    expect(Object.values(asking.inputRequests ?? {}).map(({ params }) => params.message)).toEqual(["Pay 5?"]);
    expect((await answer(server, asking, { "Pay 5?": value(true) })).result).toMatchObject({ resultType: "complete" });
    const done = await follow(server, taskId);
    expect(JSON.parse(said(done))).toMatchObject({ paid: 5, task: taskId });
    expect(effects).toEqual(["reserve", "pay 5"]);
  });
});
