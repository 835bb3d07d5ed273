// Servers that a registry knows: their replicas come and go, and what goes to them stays where it may.
import { afterEach, describe, expect, it } from "vitest";
import { consulStub } from "../../../test/consul.ts";
import { bearer } from "../src/auth/index.ts";
import { type ClientOptions, createClient, type ReplicaConfig } from "../src/index.ts";
import { consulRegistry, type Registry, type RegistryListener, staticRegistry } from "../src/registry/index.ts";
import { killReplicas, type ReplicaStub, replica, said } from "./replicas-scene.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
afterEach(killReplicas);

const threads = Array.from({ length: 40 }, (_, n) => `thread-${n}`);

/** A registry that says what the test says. */
function spoken(first?: readonly ReplicaConfig[]) {
  const listeners = new Set<RegistryListener>();
  let last = first;
  const registry: Registry = {
    replicas: async () => last ?? [],
    watch: (_, listener) => {
      listeners.add(listener);
      if (last) listener.onReplicas(last);
      return () => void listeners.delete(listener);
    },
    close: async () => {},
  };
  const say = (replicas: readonly ReplicaConfig[]) => {
    last = replicas;
    for (const { onReplicas } of listeners) onReplicas(replicas);
  };
  const fail = (code: string) => {
    for (const { onProblem } of listeners) onProblem?.(Object.assign(new Error("away"), { code }) as never);
  };
  return { registry, say, fail, listeners };
}

const kb = (more: object = {}): ClientOptions["servers"] => ({ kb: { service: "kb", ...more } });
const entries = (...all: ReplicaStub[]) => all.map(({ url }, n) => ({ url, id: `kb-${n}` }));
const place = async (client: ReturnType<typeof connect>, thread: string) =>
  (await said(client, "look", "x", thread)).split(" ")[0];

describe("a server of a registry", () => {
  it("is connected to at once, at all its replicas", async () => {
    const [a, b] = [await replica("a"), await replica("b")];
    const client = connect(kb(), { registry: spoken(entries(a, b)).registry });
    await expect.poll(() => client.servers()[0]?.replicas?.map(({ health }) => health)).toEqual(["up", "up"]);
    expect(client.servers()[0]).toMatchObject({ health: "up", registry: { health: "up" } });
    expect([a.calls, b.calls]).toEqual([0, 0]);
  });

  it("is asked for when it is first used, where it is not to be connected to at once", async () => {
    const a = await replica("a");
    const { registry, listeners } = spoken(entries(a));
    const client = connect(kb(), { registry, routing: { prewarm: false } });
    expect(listeners.size).toBe(0);
    expect(await said(client, "look", "x")).toBe("a saw x");
    expect(listeners.size).toBe(1);
    await client.close();
    expect(listeners.size).toBe(0);
  });

  it("moves only the threads of a replica that leaves, and those that a new one gets", async () => {
    const [a, b, c, d] = [await replica("a"), await replica("b"), await replica("c"), await replica("d")];
    const { registry, say } = spoken(entries(a, b, c));
    const client = connect(kb(), { registry });
    const before = await Promise.all(threads.map((thread) => place(client, thread)));
    say(entries(a, b));
    const without = await Promise.all(threads.map((thread) => place(client, thread)));
    for (const [n, was] of before.entries()) if (was !== "c") expect(without[n]).toBe(was);
    expect(without).not.toContain("c");
    say([...entries(a, b), { url: c.url, id: "kb-2" }, { url: d.url, id: "kb-3" }]);
    const again = await Promise.all(threads.map((thread) => place(client, thread)));
    for (const [n, now] of again.entries()) if (now !== "d") expect(now).toBe(before[n]);
    expect(again).toContain("d");
  });

  it("lets a replica that leaves end what it has begun, and closes it then", async () => {
    const [a, b] = [await replica("a"), await replica("b")];
    let answer = () => {};
    a.behave(async ({ params }, reply) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      reply.result({ content: [{ type: "text", text: `a ended ${JSON.stringify(params.arguments)}` }] });
    });
    const { registry, say } = spoken(entries(a));
    const client = connect(kb(), { registry });
    await client.listTools();
    const running = said(client, "spend", "slow");
    await expect.poll(() => a.calls).toBe(1);
    say([{ url: b.url, id: "kb-1" }]);
    expect(client.servers()[0]?.replicas).toMatchObject([{ id: "kb-1" }, { id: "kb-0", leaving: true, requests: 1 }]);
    expect(await said(client, "spend", "next")).toBe("b spent next");
    answer();
    expect(await running).toBe('a ended {"id":"slow"}');
    await expect.poll(() => client.servers()[0]?.replicas).toMatchObject([{ id: "kb-1" }]);
  });

  it("lets a replica that leaves end a call that asks a person, and closes it then", async () => {
    const question = {
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "Sure?",
        requestedSchema: { type: "object", properties: { sure: { type: "boolean" } } },
      },
    };
    const asking = (name: string) =>
      replica(name, {
        onCall: ({ params }) =>
          params.requestState === undefined
            ? { resultType: "input_required", requestState: name, inputRequests: { sure: question } }
            : { content: [{ type: "text", text: `${name} goes on with the state of ${params.requestState}` }] },
      });
    const [a, b] = [await asking("a"), await asking("b")];
    const { registry, say } = spoken([{ url: a.url, id: "a" }]);
    const leave = async () => {
      say([{ url: b.url, id: "b" }]);
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { action: "accept", content: { sure: true } } as const;
    };
    const client = connect(kb(), { registry, elicitation: leave });
    expect(await said(client, "spend", "x")).toBe("a goes on with the state of a");
    await expect.poll(() => client.servers()[0]?.replicas?.map(({ id }) => id)).toEqual(["b"]);
  });

  it("goes on at a replica that joined while the others were tried, and at none that left meanwhile", async () => {
    const [a, b, c] = [await replica("a"), await replica("b"), await replica("c")];
    const { registry, say } = spoken(entries(a, b));
    const client = connect(kb(), { registry });
    const places = await Promise.all(threads.map(async (thread) => [thread, await place(client, thread)]));
    const [mine] = places.find(([, where]) => where === "a") ?? [];
    a.behave((_, reply) => {
      say([{ url: c.url, id: "kb-2" }]);
      reply.http(503, {}, "leaving");
    });
    expect(await said(client, "spend", "x", mine)).toBe("c spent x");
    expect(b.effects).toEqual([]);
  });

  it("goes on with the last replicas while its registry is down, and tells", async () => {
    const [a, b] = [await replica("a"), await replica("b")];
    const consul = await start(consulStub());
    const port = (url: string) => Number(new URL(url).port);
    consul.add({ ID: "a", Name: "kb", Address: "127.0.0.1", Port: port(a.url) });
    const registry = consulRegistry({ url: consul.url });
    const states: (string | undefined)[] = [];
    const onServerState: NonNullable<ClientOptions["events"]>["onServerState"] = (info) =>
      void states.push(info.registry?.health);
    const client = connect(kb(), { registry, events: { onServerState } });
    expect(await said(client, "look", "x")).toBe("a saw x");
    consul.fail(500);
    await expect.poll(() => client.servers()[0]?.registry?.health).toBe("down");
    expect(client.servers()[0]?.registry?.error?.code).toBe("registry_unreachable");
    expect(await said(client, "look", "y")).toBe("a saw y");
    consul.fail(undefined);
    consul.remove("a");
    consul.add({ ID: "b", Name: "kb", Address: "127.0.0.1", Port: port(b.url) });
    await expect.poll(() => said(client, "look", "z"), { timeout: 5_000 }).toBe("b saw z");
    expect(states).toEqual(expect.arrayContaining(["up", "down"]));
    await registry.close();
  });

  it("is an error that may pass while its registry never answered, or names nobody", async () => {
    const { registry, fail, say } = spoken();
    const client = connect(kb({ connectTimeoutMs: 200 }), { registry });
    await expect(said(client, "look", "x")).rejects.toMatchObject({
      code: "registry_unreachable",
      maybeExecuted: false,
    });
    const failing = said(client, "look", "x");
    fail("registry_unreachable");
    await expect(failing).rejects.toMatchObject({ code: "registry_unreachable", retryable: true });
    say([]);
    await expect(said(client, "look", "x")).rejects.toMatchObject({
      code: "no_replica",
      retryable: true,
      maybeExecuted: false,
    });
    expect(client.servers()[0]).toMatchObject({ health: "down", registry: { health: "up" }, replicas: [] });
  });

  it("needs a registry", () => {
    expect(() => createClient({ servers: kb() })).toThrow("servers.kb has a service; give createClient a registry");
  });
});

describe("what is sent to the replicas of a registry", () => {
  it("goes to the server's origins only: another address is not used, and told", async () => {
    const [a, thief] = [await replica("a"), await replica("thief")];
    const { registry } = spoken([
      { url: a.url, id: "a" },
      { url: thief.url, id: "thief" },
      { url: thief.url.replace("127.0.0.1", "me:secret@127.0.0.1"), id: "named" },
      { url: "http://169.254.169.254/latest", id: "metadata" },
      { url: "ftp://127.0.0.1/x", id: "strange" },
    ]);
    const origins = [new URL(a.url).origin];
    const config = kb({ origins, auth: bearer("token-of-kb"), headers: { "x-key": "secret" } });
    const client = connect(config, { registry });
    for (const thread of threads) expect(await said(client, "look", "x", thread)).toBe("a saw x");
    expect(a.hits.every(({ headers }) => headers.authorization === "Bearer token-of-kb")).toBe(true);
    expect(thief.hits).toEqual([]);
    expect(client.servers()[0]?.registry?.refused).toEqual([
      { replica: "thief", reason: "its origin is not among the server's origins" },
      { replica: "named", reason: "it holds credentials" },
      { replica: "metadata", reason: "a token would be sent there unencrypted" },
      { replica: "strange", reason: "it is no http or https address" },
    ]);
  });

  it.each([
    ["auth", { auth: bearer("token") }],
    ["headers", { headers: { "x-key": "secret" } }],
  ])("cannot be %s without origins", (what, more) => {
    const { registry } = spoken([]);
    expect(() => connect(kb(more), { registry })).toThrow(
      `has ${what}, which would be sent to whatever address the registry names`,
    );
  });

  it("is refused for a call with headers of its own, where there are no origins", async () => {
    const a = await replica("a");
    const call = (more: object) =>
      connect(kb(more), { registry: spoken(entries(a)).registry }).callTool(
        "kb",
        "look",
        { id: "x" },
        {
          headers: { authorization: "Bearer mine" },
        },
      );
    await expect(call({})).rejects.toMatchObject({ code: "origins_needed", maybeExecuted: false });
    expect(a.calls).toBe(0);
    await call({ origins: ["http://127.0.0.1:*"] });
    expect(a.calls).toBe(1);
  });

  it.each(["kb.example", "https://kb.example/mcp", "https://*", "https://k*b.example", "ftp://kb.example", "*"])(
    "is no origin: %s",
    (origin) => {
      expect(() => connect(kb({ origins: [origin] }), { registry: staticRegistry({}) })).toThrow("which is no origin");
    },
  );
});

describe("the token of a server with replicas", () => {
  it("goes to all of them, renewed for all when one refuses it", async () => {
    const seen = new Set<string>();
    let now = "old";
    const guarded = () =>
      start(
        stubHttp({
          tools: ["look"],
          onHttp: (req, res) => {
            const { authorization = "" } = req.headers;
            if (now === "new") seen.add(`${req.headers.host} ${authorization}`);
            if (authorization === `Bearer ${now}`) return false;
            res.writeHead(401, { "www-authenticate": "Bearer" }).end();
            return true;
          },
        }),
      );
    const all = [await guarded(), await guarded()];
    const config = { replicas: all.map(({ url }) => url), auth: bearer(() => now, { principal: () => "me" }) };
    const client = connect({ kb: config });
    await client.listTools();
    now = "new";
    await Promise.all(threads.map((threadId) => client.callTool("kb", "look", {}, { runtime: { threadId } })));
    expect([...seen].sort()).toEqual(all.map(({ url }) => `${new URL(url).host} Bearer new`).sort());
    expect(client.servers()[0]?.breaker).toBe("closed");
  });

  it("is not sent unencrypted to one of them", () => {
    const replicas = ["https://a.example/mcp", "http://b.example/mcp"];
    expect(() => connect({ kb: { replicas, auth: bearer("t") } })).toThrow("unencrypted to b.example");
  });
});
