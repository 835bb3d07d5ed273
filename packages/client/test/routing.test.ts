import { TenonError } from "@tenon/core";
import { createKeyRing, newContractKey } from "@tenon/core/contract";
import { afterEach, describe, expect, it } from "vitest";
import type { ServerInfo } from "../src/index.ts";
import { retry } from "../src/interceptors/index.ts";
import { killReplicas, LOOK, replica, replicaProcess, SPEND, said } from "./replicas-scene.ts";
import { closeAfterEach, connect, type HttpBehavior, type StubHandler } from "./stub/index.ts";

closeAfterEach();
afterEach(killReplicas);

const threads = Array.from({ length: 24 }, (_, n) => `thread-${n}`);
const fails: StubHandler = (_, reply) => reply.http(500, {}, "out of order");
const dies: StubHandler = (_, reply) => reply.die();
const lacks: StubHandler = ({ params }, reply) => reply.error(-32_602, `Unknown tool: ${params.name}`);
const hangs: StubHandler = () => {};

const three = async () => [await replica("a"), await replica("b"), await replica("c")] as const;
const urls = (all: readonly { url: string }[]) => all.map(({ url }) => url);

describe("a server with four replicas: one lacks the tool, one starts to fail, one is killed", () => {
  it("shows no error of a tool that only reads", async () => {
    const [older, failing, good] = await three();
    const killed = await replicaProcess();
    older.behave(lacks);
    const client = connect({ kb: { replicas: urls([older, failing, killed, good]) } });
    await client.listTools();
    const everywhere = async (id: string) => Promise.all(threads.map((thread) => said(client, "look", id, thread)));
    await everywhere("before");
    failing.behave(fails);
    const during = everywhere("during");
    await killed.kill();
    const answers = [...(await during), ...(await everywhere("after"))];
    expect(answers).toHaveLength(48);
    for (const answer of answers) expect(answer).toMatch(/ saw (during|after)$/);
    const health = Object.fromEntries(client.servers()[0]?.replicas?.map(({ id, health }) => [id, health]) ?? []);
    expect(health).toMatchObject({ [killed.url]: "down", [good.url]: "up" });
  });

  it("has no effect twice, and each error of a tool with effects is typed and says whether it may have run", async () => {
    const [older, failing, good] = await three();
    const killed = await replicaProcess("hangs");
    older.behave(lacks);
    failing.behave(({ nth }, reply) => (nth % 2 === 0 ? dies({} as never, reply) : fails({} as never, reply)));
    const client = connect({ kb: { replicas: urls([older, failing, killed, good]) } });
    await client.listTools();
    const all = threads.map((thread) =>
      said(client, "spend", thread, thread).then(
        () => "done",
        (error: unknown) => error,
      ),
    );
    await expect.poll(() => killed.effects().length).toBeGreaterThan(0);
    await killed.kill();
    const ends = await Promise.all(all);
    const sent = failing.calls;
    const effects = [...good.effects, ...killed.effects()];
    expect(new Set(effects).size).toBe(effects.length);
    const errors = ends.filter((end) => end !== "done");
    for (const error of errors) {
      expect(error).toBeInstanceOf(TenonError);
      expect(error).toMatchObject({ server: "kb", maybeExecuted: true });
      expect(["lost", "http_error"]).toContain((error as TenonError).code);
    }
    // what may have run was sent once; what is done was done where it was answered
    expect(errors.length).toBeGreaterThanOrEqual(sent + killed.effects().length);
    expect(good.effects.length).toBe(ends.length - errors.length);
  });
});

describe("which replica a call goes to", () => {
  it("is the same for calls of one thread, and threads are spread", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all) } });
    const place = async (thread: string) => (await said(client, "look", "x", thread)).split(" ")[0];
    const before = await Promise.all(threads.map(place));
    expect(new Set(before).size).toBe(3);
    expect(await Promise.all(threads.map(place))).toEqual(before);
    const other = connect({ kb: { replicas: urls([...all].reverse()) } });
    const there = async (thread: string) => (await said(other, "look", "x", thread)).split(" ")[0];
    expect(await Promise.all(threads.map(there))).toEqual(before);
  });

  it("is that of the session of its context where it has no thread, else one for the whole client", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all) } });
    const place = async (meta: Record<string, unknown>) => {
      const result = await client.callTool("kb", "look", { id: "x" }, { meta });
      return JSON.stringify(result.content).slice(24, 25);
    };
    const session = (n: number) => place({ "dev.tenon/context": { session_id: `s${n}` } });
    const sessions = await Promise.all(threads.map((_, n) => session(n)));
    expect(new Set(sessions).size).toBe(3);
    expect(await Promise.all(threads.map((_, n) => session(n)))).toEqual(sessions);
    expect(new Set(await Promise.all(threads.map(() => place({})))).size).toBe(1);
  });

  it("is that of a key the program chooses", async () => {
    const all = await three();
    const keys: unknown[] = [];
    const key = (request: { threadId?: string }) => {
      keys.push(request);
      return request.threadId?.split("/")[0];
    };
    const client = connect({ kb: { replicas: urls(all) } }, { routing: { key } });
    const places = await Promise.all(threads.map((thread) => said(client, "look", "x", `tenant/${thread}`)));
    expect(new Set(places).size).toBe(1);
    expect(keys).toContainEqual({ server: "kb", what: "tools/call look", threadId: "tenant/thread-0" });
  });

  it("is the next one while its own is away, and its own again when that is back", async () => {
    const [a, b] = await three();
    const replicas = [
      { url: a.url, id: "a" },
      { url: b.url, id: "b" },
    ];
    const client = connect({ kb: { replicas } });
    const mine = "thread-0";
    const own = (await said(client, "look", "x", mine)).split(" ")[0] === "a" ? a : b;
    await own.close();
    expect(await said(client, "look", "away", mine)).toMatch(own === a ? /^b/ : /^a/);
    const back = await replica(own === a ? "a" : "b", { at: own.port });
    await expect
      .poll(() => said(client, "look", "back", mine), { timeout: 5_000, interval: 100 })
      .toMatch(own === a ? /^a/ : /^b/);
    expect(back.calls).toBeGreaterThan(0);
  });
});

describe("a call that its replica does not answer", () => {
  it("goes on elsewhere when the tool only reads, and is sent four times at most", async () => {
    const all = await Promise.all(["a", "b", "c", "d", "e", "f"].map((name) => replica(name)));
    const client = connect({ kb: { replicas: urls(all) } });
    await client.listTools();
    for (const one of all) one.behave(fails);
    await expect(said(client, "look", "x", "t")).rejects.toMatchObject({ code: "no_replica", maybeExecuted: true });
    expect(all.reduce((sum, { calls }) => sum + calls, 0)).toBe(4);
  });

  it("comes out of the budget of retry, with the client's own sendings", async () => {
    const all = await three();
    const interceptors = [retry({ maxAttempts: 5, initialDelayMs: 1, maxDelayMs: 2 })];
    const client = connect({ kb: { replicas: urls(all) } }, { interceptors });
    await client.listTools();
    for (const one of all) one.behave(fails);
    await expect(said(client, "look", "x", "t")).rejects.toMatchObject({ code: "no_replica", retryable: true });
    expect(all.reduce((sum, { calls }) => sum + calls, 0)).toBe(5);
  });

  it("names every replica that was tried when none is left", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all) } });
    await client.listTools();
    await Promise.all(all.map((one) => one.close()));
    await new Promise((resolve) => setTimeout(resolve, 30)); // both ends are in this process: sockets notice a moment later
    const error = await said(client, "spend", "x", "t").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "no_replica", server: "kb", maybeExecuted: false, retryable: true });
    const { replicas } = (error as TenonError).data as { replicas: { replica: string; code: string }[] };
    expect(replicas.map(({ replica: id }) => id).sort()).toEqual(urls(all).sort());
    expect(new Set(replicas.map(({ code }) => code))).toEqual(new Set(["unreachable"]));
  });

  it("is over with its own time: a silent replica is not waited for twice, and retry asks another one", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all) } });
    const place = (await said(client, "look", "x", "t")).split(" ")[0];
    const own = all[["a", "b", "c"].indexOf(place ?? "")];
    own?.behave(hangs);
    const call = (more = {}) =>
      client.callTool("kb", "look", { id: "x" }, { timeoutMs: 300, runtime: { threadId: "t" }, ...more });
    await expect(call()).rejects.toMatchObject({ code: "timeout", maybeExecuted: true });
    const patient = connect({ kb: { replicas: urls(all) } }, { interceptors: [retry({ initialDelayMs: 1 })] });
    await patient.listTools();
    const result = await patient.callTool("kb", "look", { id: "y" }, { timeoutMs: 300, runtime: { threadId: "t" } });
    expect(result.isError).toBe(false);
  });

  it("is not sent elsewhere when its arguments, its credential or its context were refused", async () => {
    for (const refuses of [
      (_: unknown, reply: Parameters<StubHandler>[1]) => reply.error(-32_602, "id must be a number"),
      (_: unknown, reply: Parameters<StubHandler>[1]) => reply.http(401),
      (_: unknown, reply: Parameters<StubHandler>[1]) =>
        reply.error(-32_602, "no", { reason: "missing_context_field" }),
    ]) {
      const all = await three();
      const client = connect({ kb: { replicas: urls(all) } });
      await client.listTools();
      for (const one of all) one.behave(refuses);
      await expect(said(client, "look", "x", "t")).rejects.toMatchObject({ maybeExecuted: false });
      expect(all.reduce((sum, { calls }) => sum + calls, 0)).toBe(1);
    }
  });

  it("does not wait for a busy replica while another one is free", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all) } });
    await client.listTools();
    const place = (await said(client, "look", "x", "t")).split(" ")[0];
    all[["a", "b", "c"].indexOf(place ?? "")]?.behave((_, reply) => reply.http(503, { "retry-after": "20" }));
    const began = performance.now();
    await said(client, "spend", "x", "t");
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

describe("a replica that lacks a tool the others have", () => {
  const says = (text: string): StubHandler => {
    return (_, reply) => reply.result({ isError: true, content: [{ type: "text", text }] });
  };
  it.each([
    ["refuses it", lacks],
    ["answers as the SDK for TypeScript", says("MCP error -32602: Tool spend not found")],
    ["answers as the SDK for Python", says("Unknown tool: spend")],
  ])("is asked once, and left out for that tool for a while: one that %s", async (_, how) => {
    const [older, newer] = await three();
    older.behave(how);
    const client = connect({ kb: { replicas: urls([newer, older]) } });
    await client.listTools();
    for (const thread of threads) expect(await said(client, "spend", thread, thread)).toMatch(/ spent /);
    expect(older.calls).toBe(1);
    expect(newer.effects).toEqual(threads);
  });

  it("is not asked at all where its capabilities say so, in the configuration or on its connection", async () => {
    const [a, b] = await three();
    const prompts = await replica("prompts", { capabilities: { prompts: {} } });
    const replicas = [{ url: a.url, capabilities: ["resources.read"] }, prompts.url, b.url];
    const client = connect({ kb: { replicas } }, { routing: { prewarm: true } });
    await expect.poll(() => client.servers()[0]?.replicas?.every(({ health }) => health === "up")).toBe(true);
    for (const thread of threads) expect(await said(client, "look", "x", thread)).toMatch(/^b/);
    expect([a.calls, prompts.calls]).toEqual([0, 0]);
  });

  it("is not one whose tool fails with other words", async () => {
    const all = await three();
    for (const one of all) one.behave(says("Unknown tool: hammer, so nothing was spent on it"));
    const client = connect({ kb: { replicas: urls(all) } });
    await client.listTools();
    expect(await said(client, "spend", "x")).toContain("hammer");
    expect(all.reduce((sum, { calls }) => sum + calls, 0)).toBe(1);
  });

  it("makes an unknown tool of one that no replica knows", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all) } });
    await client.listTools();
    for (const one of all) one.behave(lacks);
    await expect(said(client, "look", "x")).rejects.toMatchObject({ code: "unknown_tool", maybeExecuted: false });
  });
});

describe("the list of tools during an upgrade, replica by replica", () => {
  it("stays that of one replica while it is there, and changes once", async () => {
    const old = await replica("a");
    const next = await replica("b", { tools: [LOOK, SPEND, { ...LOOK, name: "look_closely" }] });
    const client = connect({ kb: { replicas: [old.url, next.url] } });
    const names = async () => (await client.listTools()).map(({ wireName }) => wireName);
    for (let round = 0; round < 3; round++) {
      expect(await names()).toEqual(["look", "spend"]);
      await Promise.all(threads.map((thread) => said(client, "look", "x", thread)));
    }
    await old.close();
    await Promise.all(threads.map((thread) => said(client, "look", "x", thread)));
    await expect.poll(names).toEqual(["look", "look_closely", "spend"]);
    const upgraded = await replica("a", { at: old.port });
    expect(upgraded.calls).toBe(0);
    expect(await names()).toEqual(["look", "look_closely", "spend"]);
  });
});

describe("results during an upgrade", () => {
  const schema = (...names: string[]) => ({
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
    required: names,
    additionalProperties: false,
  });
  const version = (name: string, declares: string[], says = declares) => {
    const structuredContent = Object.fromEntries(says.map((key) => [key, name]));
    return replica(name, {
      tools: [{ ...LOOK, outputSchema: schema(...declares) }],
      onCall: () => ({ content: [], structuredContent }),
    });
  };

  it("are held against what the replica of the list declares only where that one answered", async () => {
    for (const listed of ["old", "new"] as const) {
      const old = await version("old", ["hits"]);
      const next = await version("new", ["hits", "searched"]);
      const client = connect({ kb: { replicas: urls(listed === "old" ? [old, next] : [next, old]) } });
      await client.listTools();
      const results = await Promise.all(
        threads.map((threadId) => client.callTool("kb", "look", { id: "x" }, { runtime: { threadId } })),
      );
      expect(results.filter(({ isError }) => isError)).toEqual([]);
      expect(results.map(({ structured }) => structured)).toContainEqual({ hits: "old" });
      expect(results.map(({ structured }) => structured)).toContainEqual({ hits: "new", searched: "new" });
    }
  });

  it("are still checked at the replica that the list came from", async () => {
    const wrong = await version("a", ["hits"], ["other"]);
    const client = connect({ kb: { replicas: [wrong.url] } });
    expect(await client.callTool("kb", "look", { id: "x" })).toMatchObject({ problem: { code: "invalid_output" } });
  });
});

it("a replica of the older revision stands beside one of the newer", async () => {
  const older = await replica("older", { era: "legacy" });
  const newer = await replica("newer");
  const client = connect({ kb: { replicas: urls([older, newer]) } });
  const answers = await Promise.all(threads.map((thread) => said(client, "spend", thread, thread)));
  expect(new Set(answers.map((answer) => answer.split(" ")[0]))).toEqual(new Set(["older", "newer"]));
  const eras = Object.fromEntries(client.servers()[0]?.replicas?.map(({ id, era }) => [id, era]) ?? []);
  expect(eras).toEqual({ [older.url]: "legacy", [newer.url]: "modern" });
  await newer.close();
  for (const thread of threads) expect(await said(client, "look", thread, thread)).toMatch(/^older/);
});

it("is shown as one server with its replicas, and events tell what changes", async () => {
  const [a, b] = await three();
  const states: ServerInfo[] = [];
  const client = connect(
    { kb: { replicas: [{ url: `${a.url}?key=secret`, id: "first" }, b.url] } },
    {
      events: { onServerState: (info) => void states.push(info) },
    },
  );
  expect(client.servers()[0]).toMatchObject({ server: "kb", health: "idle", breaker: "closed" });
  await client.listTools();
  const [info] = client.servers();
  expect(info).toMatchObject({
    health: "up",
    era: "modern",
    replicas: [
      { id: "first", health: "up", breaker: "closed", requests: 0 },
      { id: b.url, health: "idle" },
    ],
  });
  expect(JSON.stringify(info)).not.toContain("secret");
  expect(states.at(-1)?.replicas?.[0]?.health).toBe("up");
});

describe("a replica that fails too often", () => {
  const breaker = { failures: 2, windowMs: 10_000, openMs: 400 };

  it("is left alone: calls go elsewhere at once, one tries it again later, and it is back", async () => {
    const [a, b] = await three();
    const states: (string | undefined)[] = [];
    const onServerState = ({ replicas }: ServerInfo) => void states.push(replicas?.[0]?.breaker);
    const patient = { ...breaker, openMs: 1_500 }; // longer than a busy machine needs for the calls below
    const client = connect({ kb: { replicas: urls([a, b]), breaker: patient } }, { events: { onServerState } });
    await client.listTools();
    a.behave(fails);
    await Promise.all(threads.map((thread) => said(client, "look", "x", thread)));
    const seen = a.calls;
    for (const thread of threads) expect(await said(client, "spend", thread, thread)).toMatch(/^b/);
    expect(a.calls).toBe(seen);
    expect(client.servers()[0]).toMatchObject({
      breaker: "closed",
      replicas: [{ breaker: "open" }, { breaker: "closed" }],
    });
    a.behave(undefined);
    await new Promise((resolve) => setTimeout(resolve, 1_550));
    expect(client.servers()[0]?.replicas?.[0]?.breaker).toBe("half-open");
    for (const thread of threads) expect(await said(client, "spend", thread, thread)).toMatch(/^b/); // it is not tried out with these
    for (const thread of threads) await said(client, "look", "x", thread);
    expect(client.servers()[0]?.replicas?.[0]).toMatchObject({ breaker: "closed" });
    expect(states.filter((state, n) => state !== states[n - 1])).toEqual(["closed", "open", "half-open", "closed"]);
    expect(a.calls).toBeGreaterThan(seen);
  });

  it("says when the next try is possible, once all are left alone, and retry waits as long", async () => {
    const all = await three();
    const client = connect({ kb: { replicas: urls(all), breaker } });
    await client.listTools();
    for (const one of all) one.behave(fails);
    for (const thread of threads) await said(client, "look", "x", thread).catch(() => {});
    const sent = all.reduce((sum, { calls }) => sum + calls, 0);
    const error = await said(client, "spend", "x").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "breaker_open", retryable: true, maybeExecuted: false });
    const { retryAfterMs, retryAt, replicas } = (error as TenonError).data as Record<string, unknown>;
    expect(retryAfterMs).toBeLessThanOrEqual(400);
    expect(Date.parse(String(retryAt))).toBeLessThanOrEqual(Date.now() + 400);
    expect(replicas).toHaveLength(3);
    expect(all.reduce((sum, { calls }) => sum + calls, 0)).toBe(sent);
    expect(client.servers()[0]?.breaker).toBe("open");
  });

  it("is none for refused credentials and for tools that fail, however often", async () => {
    const a = await replica("a");
    const client = connect({ kb: { url: a.url, breaker } });
    await client.listTools();
    for (const how of [
      (_: unknown, reply: Parameters<StubHandler>[1]) => reply.http(403),
      (_: unknown, reply: Parameters<StubHandler>[1]) => reply.result({ isError: true, content: [] }),
    ]) {
      a.behave(how);
      for (const thread of threads) await said(client, "look", "x", thread).catch(() => {});
    }
    expect(client.servers()[0]).toMatchObject({ breaker: "closed", replicas: [{ id: a.url, breaker: "closed" }] });
    a.behave(dies);
    for (const thread of threads) await said(client, "spend", "x", thread).catch(() => {});
    await expect(said(client, "spend", "x")).rejects.toMatchObject({ code: "breaker_open" });
  });

  it("a server of one address has none unless it is asked for", async () => {
    const a = await replica("a");
    const plain = connect({ kb: a.config });
    expect(plain.servers()[0]).toEqual({ server: "kb", health: "idle", problems: [] });
    const watched = connect({ kb: a.config }, { routing: { breaker } });
    expect(watched.servers()[0]?.breaker).toBe("closed");
    const not = connect({ kb: { ...a.config, breaker: false } }, { routing: { breaker } });
    expect(not.servers()[0]?.breaker).toBeUndefined();
  });
});

describe("replicas with a contract", () => {
  const key = newContractKey({ kid: "now", alg: "HS256" });
  const context = { session_id: "s1" };
  /** What makes a stub announce a contract, signed or not. */
  const announcing = (capabilities: readonly string[], signed = true): HttpBehavior => {
    const declaration = { version: "0.4.2", server_id: "kb", capabilities, context_schema: { type: "object" } };
    const contract = signed ? createKeyRing([key]).sign(declaration) : declaration;
    const capable = { tools: {}, extensions: { "dev.tenon/context": contract } };
    const discovered = {
      supportedVersions: ["2026-07-28"],
      capabilities: capable,
      serverInfo: { name: "kb", version: "1" },
    };
    return { on: { "server/discover": () => discovered } };
  };
  const ALL = ["tools.list", "tools.execute", "contexts.get"];

  it("are not used where nobody vouches for them, or their contract does not allow it; the others are", async () => {
    const unsigned = await replica("unsigned", announcing(ALL, false));
    const narrow = await replica("narrow", announcing(["tools.list"]));
    const good = await replica("good", announcing(ALL));
    const client = connect({ kb: { replicas: urls([unsigned, narrow, good]), contract: { keys: [key], context } } });
    for (const thread of threads) expect(await said(client, "spend", thread, thread)).toMatch(/^good/);
    expect([unsigned.calls, narrow.calls]).toEqual([0, 0]);
    expect(good.effects).toEqual(threads);
    const [info] = client.servers();
    expect(info?.replicas).toMatchObject([
      { error: { code: "signature" } },
      { drift: { undeclared: ["tools.execute"] } },
      { capabilities: ALL },
    ]);
    expect(info?.breaker).toBe("closed");
  });

  it("are refused by the contract's error when none is good enough", async () => {
    const all = [await replica("a", announcing(ALL, false)), await replica("b", announcing(ALL, false))];
    const client = connect({ kb: { replicas: urls(all), contract: { keys: [key] } } });
    await expect(said(client, "look", "x")).rejects.toMatchObject({ name: "ContractError", code: "signature" });
    expect(all.map(({ calls }) => calls)).toEqual([0, 0]);
  });

  it("are asked one after the other for the context of a session that only one of them knows", async () => {
    const knows = (session: string): HttpBehavior => {
      const behavior = announcing(ALL);
      const get: StubHandler = ({ params }, reply) =>
        params.session_id === session
          ? { context: { session_id: session, at: "here" } }
          : void reply.error(-32_602, "no such session", { reason: "unknown_context" });
      return { ...behavior, on: { ...behavior.on, "contexts/get": get } };
    };
    const all = [await replica("a", knows("s1")), await replica("b", knows("s2")), await replica("c", knows("s3"))];
    const client = connect({ kb: { replicas: urls(all), contract: { keys: [key] } } });
    for (const session of ["s1", "s2", "s3"]) {
      expect(await client.getContext("kb", session)).toMatchObject({ context: { session_id: session } });
    }
    await expect(client.getContext("kb", "s4")).rejects.toMatchObject({ code: "rpc_error" });
  });
});
