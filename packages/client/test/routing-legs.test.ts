// What belongs together goes to the replica that began it, and to another one only when that is gone.
import { describe, expect, it } from "vitest";
import {
  closeAfterEach,
  connect,
  type HttpBehavior,
  type HttpStub,
  type StubHandler,
  start,
  stubHttp,
} from "./stub/index.ts";

closeAfterEach();
const TASKS = "io.modelcontextprotocol/tasks";
const tools = [{ name: "work", inputSchema: { type: "object" }, _meta: { "dev.tenon/task": "optional" } }];
const text = (value: string) => ({ content: [{ type: "text", text: value }] });
const urls = (all: readonly HttpStub[]) => all.map(({ url }) => url);
/** Each request on its own: without a replica that began it, it would go anywhere. */
const anywhere = { key: () => String(Math.random()) };

/** A replica that makes tasks; which ones it knows is in `known`, which replicas may share. */
function tasking(name: string, known: Map<string, string>, more: HttpBehavior = {}) {
  let made = 0;
  const task = (taskId: string, status: string) => ({
    taskId,
    status,
    createdAt: "2026-01-01T00:00:00Z",
    lastUpdatedAt: "2026-01-01T00:00:00Z",
    ttlMs: 60_000,
    pollIntervalMs: 100,
  });
  return start(
    stubHttp({
      tools,
      capabilities: { tools: {}, extensions: { [TASKS]: {} } },
      onCall: () => {
        const id = `${name}-${++made}`;
        known.set(id, name);
        return { resultType: "task", ...task(id, "working") };
      },
      ...more,
      on: {
        "tasks/get": ({ params }, reply) => {
          const id = String(params.taskId);
          const by = known.get(id);
          if (by === undefined) return void reply.error(-32_602, "Task not found");
          return { ...task(id, "completed"), result: text(`${name} ended ${id}`) };
        },
        "tasks/cancel": ({ params }, reply) =>
          known.delete(String(params.taskId)) ? {} : void reply.error(-32_602, "Task not found"),
        ...more.on,
      },
    }),
  );
}

describe("a task of a server with replicas", () => {
  it("is followed at the replica that made it, where each keeps its own", async () => {
    const all = [await tasking("a", new Map()), await tasking("b", new Map()), await tasking("c", new Map())];
    const client = connect({ kb: { replicas: urls(all) } }, { routing: anywhere });
    await client.listTools();
    const results = await Promise.all(Array.from({ length: 12 }, () => client.callTool("kb", "work")));
    for (const { content } of results) expect(JSON.stringify(content)).toMatch(/(\w) ended \1-\d/);
    expect(all.reduce((sum, stub) => sum + stub.count("tasks/get"), 0)).toBe(12);
  });

  it("is found by its id at whichever replica knows it, and gone when none does", async () => {
    const known = new Map<string, string>();
    const all = [await tasking("a", new Map()), await tasking("b", known), await tasking("c", new Map())];
    known.set("b-7", "b");
    const client = connect({ kb: { replicas: urls(all) } }, { routing: anywhere });
    for (let n = 0; n < 5; n++) expect(await client.tasks.get("kb", "b-7")).toMatchObject({ status: "completed" });
    await client.tasks.cancel("kb", "b-7");
    await expect(client.tasks.get("kb", "b-7")).rejects.toMatchObject({ code: "task_gone" });
  });

  it("goes on at another replica that shares the store, when its own is gone", async () => {
    const known = new Map<string, string>();
    const all = [await tasking("a", known), await tasking("b", known)];
    const client = connect({ kb: { replicas: urls(all) } });
    const task = await client.tasks.start("kb", "work");
    const [own, other] = task.id?.startsWith("a") ? all : [...all].reverse();
    await own?.close();
    const result = await client.tasks.resume("kb", String(task.id));
    expect(JSON.stringify(result.content)).toContain(`ended ${task.id}`);
    expect(other?.count("tasks/get")).toBe(1);
  });

  it("is waited for, and not called gone, while the only replica that knows it is away", async () => {
    const known = new Map<string, string>();
    const all = [await tasking("a", known), await tasking("b", new Map())];
    known.set("a-1", "a");
    const client = connect({ kb: { replicas: urls(all) } });
    await client.tasks.get("kb", "a-1");
    await all[0]?.close();
    await expect(client.tasks.get("kb", "a-1")).rejects.toMatchObject({ code: "no_replica", retryable: true });
    const following = client.tasks.resume("kb", "a-1");
    await tasking("a", known, { at: all[0]?.port ?? 0 });
    expect(JSON.stringify((await following).content)).toContain("a ended a-1");
  });

  it("is not begun a second time at another replica: its key counts in one store only", async () => {
    const dies: StubHandler = (_, reply) => reply.die();
    const all = [await tasking("a", new Map(), { onCall: dies }), await tasking("b", new Map(), { onCall: dies })];
    const client = connect({ kb: { replicas: urls(all) } });
    await client.listTools();
    await expect(client.callTool("kb", "work")).rejects.toMatchObject({ code: "lost", maybeExecuted: true });
    expect(all.reduce((sum, stub) => sum + stub.count("tools/call"), 0)).toBe(1);
  });
});

describe("a question of a server with replicas", () => {
  const asks = (name: string): HttpBehavior => ({
    tools: ["ask"],
    onCall: ({ params }, reply) => {
      if (params.inputResponses === undefined) {
        const requestedSchema = { type: "object", properties: {} };
        const confirm = { method: "elicitation/create", params: { mode: "form", message: "Sure?", requestedSchema } };
        return { resultType: "input_required", inputRequests: { confirm }, requestState: `sealed by ${name}` };
      }
      if (params.requestState !== `sealed by ${name}`)
        return void reply.error(-32_602, "the state is not of this server");
      return text(`${name} was answered`);
    },
  });

  it("is answered at the replica that asked", async () => {
    const all = [await start(stubHttp(asks("a"))), await start(stubHttp(asks("b"))), await start(stubHttp(asks("c")))];
    const elicitation = async () => ({ action: "accept" as const, content: {} });
    const client = connect({ kb: { replicas: urls(all) } }, { routing: anywhere, elicitation });
    const results = await Promise.all(Array.from({ length: 12 }, () => client.callTool("kb", "ask")));
    for (const { content } of results) expect(JSON.stringify(content)).toMatch(/[abc] was answered/);
  });
});
