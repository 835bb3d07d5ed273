// A foreign server with tasks: the SDK and handlers written by hand. What it knows is in one file, so that it can be killed and
// started again; how far a task is follows from the time and the answers, so nothing has to run.
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { listen } from "./servers.ts";

type Json = Record<string, unknown>;
const TASKS = "io.modelcontextprotocol/tasks";

interface Task {
  id: string;
  tool: string;
  args: Json;
  begun: number;
  answers: Record<string, { answer: unknown; at: number }>;
  cancelled: boolean;
}

/** What the server keeps. */
export interface Kept {
  tasks: Record<string, Task>;
  keys: Record<string, string>;
  /** Every request about a task, in order. */
  log: { method: string; tool: string; answers?: Json }[];
}

export function readKept(file: string): Kept {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Kept) : { tasks: {}, keys: {}, log: [] };
}

function keep(file: string, kept: Kept): void {
  writeFileSync(`${file}.new`, JSON.stringify(kept));
  renameSync(`${file}.new`, file);
}

const form = (message: string) => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { ok: { type: "boolean", title: "Really" } }, required: ["ok"] },
  },
});

/** What a task asks for now: the keys of `ask` together, or one after the other. */
function openOf({ args, answers }: Task): Record<string, unknown> {
  const keys = (args.ask as string[] | undefined) ?? [];
  const stale = Number(args.staleMs ?? 0);
  const open = keys.filter((key) => {
    const given = answers[key];
    return given === undefined || Date.now() < given.at + stale;
  });
  const now = args.inTurn === true ? open.slice(0, 1) : open;
  return Object.fromEntries(now.map((key) => [key, (args.requests as Json | undefined)?.[key] ?? form(`${key}?`)]));
}

/** How a task is seen from outside. */
function shown(task: Task): Json {
  const { args, begun } = task;
  const ms = Number(args.ms ?? 0);
  const age = Date.now() - begun;
  const base = {
    taskId: task.id,
    createdAt: new Date(begun).toISOString(),
    lastUpdatedAt: new Date().toISOString(),
    ttlMs: 60_000,
    pollIntervalMs: Number(args.pollIntervalMs ?? 100),
    ...(typeof args.says === "string" && { statusMessage: `${args.says} ${Math.min(3, Math.floor((age / ms) * 3))}` }),
    ...(args.counts === true && {
      _meta: { "dev.tenon/progress": { progress: Math.min(ms, age), total: ms, message: "counting" } },
    }),
  };
  if (task.cancelled) return { ...base, status: "cancelled" };
  if (age < ms) return { ...base, status: "working" };
  const inputRequests = openOf(task);
  if (Object.keys(inputRequests).length > 0) return { ...base, status: "input_required", inputRequests };
  if (args.fail === true) {
    return { ...base, status: "failed", error: { code: -32_603, message: "the disk is full", data: { disk: 1 } } };
  }
  if (args.fail === "capability") {
    return { ...base, status: "failed", error: { code: -32_021, message: "This needs somebody to ask" } };
  }
  const answers = Object.fromEntries(Object.entries(task.answers).map(([key, { answer }]) => [key, answer]));
  const result = {
    content: [{ type: "text", text: JSON.stringify({ done: args.label ?? "work", answers }) }],
    ...(args.structured !== undefined && { structuredContent: args.structured }),
    ...(args.toolError === true && { isError: true }),
  };
  return { ...base, status: "completed", result };
}

const tools = [
  { name: "work", description: "Works as a task", inputSchema: { type: "object" } },
  { name: "quick", description: "Answers at once", inputSchema: { type: "object" } },
  {
    name: "counted",
    description: "Works as a task with a checked result",
    inputSchema: { type: "object" },
    outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  },
  {
    name: "ours",
    description: "Says that it makes tasks, as servers of ours do",
    inputSchema: { type: "object" },
    _meta: { "dev.tenon/task": "required" },
  },
];

/** A server over this file. */
export function taskServer(file: string): Server {
  const server = new Server(
    { name: "foreign", version: "1.0.0" },
    { capabilities: { tools: {}, extensions: { [TASKS]: {} } } },
  );
  const find = (kept: Kept, id: string): Task => {
    const task = kept.tasks[id];
    if (!task) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Task not found");
    return task;
  };
  const withId = { params: z.looseObject({ taskId: z.string() }) };
  // the SDK's types know neither the extension nor what its results look like
  server.setRequestHandler("tools/list", () => ({ tools }) as never);
  server.setRequestHandler("tools/call", ({ params }) => {
    const { name, arguments: args = {}, _meta } = params;
    if (name === "quick") return { content: [{ type: "text", text: "at once" }] };
    const kept = readKept(file);
    kept.log.push({ method: "tools/call", tool: name });
    const key = _meta?.["dev.tenon/idempotency-key"];
    const id = (typeof key === "string" ? kept.keys[key] : undefined) ?? randomUUID();
    kept.tasks[id] ??= { id, tool: name, args, begun: Date.now(), answers: {}, cancelled: false };
    if (typeof key === "string") kept.keys[key] = id;
    keep(file, kept);
    const { _meta: _now, inputRequests: _asked, result: _done, ...task } = shown(kept.tasks[id]);
    return { resultType: "task", ...task, status: "working" } as never;
  });
  server.setRequestHandler("tasks/get", withId, ({ taskId }) => {
    const kept = readKept(file);
    const task = find(kept, taskId);
    kept.log.push({ method: "tasks/get", tool: task.tool });
    keep(file, kept);
    return shown(task) as never;
  });
  server.setRequestHandler("tasks/update", withId, ({ taskId }, ctx) => {
    const kept = readKept(file);
    const task = find(kept, taskId);
    const answers = (ctx.mcpReq.inputResponses ?? {}) as Json;
    kept.log.push({ method: "tasks/update", tool: task.tool, answers });
    const open = openOf(task);
    for (const [name, answer] of Object.entries(answers)) {
      if (Object.hasOwn(open, name)) task.answers[name] ??= { answer, at: Date.now() };
    }
    keep(file, kept);
    return {} as never;
  });
  server.setRequestHandler("tasks/cancel", withId, ({ taskId }) => {
    const kept = readKept(file);
    find(kept, taskId).cancelled = true;
    kept.log.push({ method: "tasks/cancel", tool: "" });
    keep(file, kept);
    return {} as never;
  });
  return server;
}

/** The same over HTTP; the older revision is refused. */
export function taskHandler(file: string): (request: Request) => Promise<Response> {
  const handler = createMcpHandler(() => taskServer(file), { legacy: "reject" });
  return (request) => handler.fetch(request);
}

// as a program: node tasks-server.mjs <file> <port>, or <file> stdio [own]: a file for this process alone
const [path = "", how, whose] = process.argv.slice(2);
if (process.env.TENON_TASKS_SERVER) {
  if (how === "stdio")
    serveStdio(() => taskServer(whose === "own" ? `${path}.${process.pid}` : path), { legacy: "reject" });
  else process.stdout.write(`${(await listen(taskHandler(path), Number(how ?? 0))).url}\n`);
}
