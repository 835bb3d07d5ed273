// Changes of a server's tools, what is known about a server beforehand, cancelling, turns, and the end of it all.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { program } from "../../../test/programs.ts";
import { type EventSource, renderText } from "../src/index.ts";
import { ALL_STUBS, closeAfterEach, connect, STUBS, start, stubHttp, stubStdio } from "./stub/index.ts";

closeAfterEach();
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown) => void unhandled.push(reason);
beforeAll(() => void process.on("unhandledRejection", onUnhandled));
afterAll(() => {
  process.off("unhandledRejection", onUnhandled);
  expect(unhandled).toEqual([]);
});
const CHANGED = "notifications/tools/list_changed";
const patient = { timeout: 10_000 };

describe.each(ALL_STUBS)("changed tools, over %s, revision %s", (transport, era, stub) => {
  it("are told by an event and seen by the next list, without asking in between", async () => {
    let tools = ["a"];
    const changed: string[] = [];
    const server = await start(stub({ tools: () => tools }));
    const client = connect({ s: server.config }, { events: { onCatalogChanged: (e) => void changed.push(e.server) } });
    await client.listTools();
    if (era === "modern") await expect.poll(() => server.listeners, patient).toBe(1);
    await client.listTools();
    expect(server.count("tools/list")).toBe(1);
    tools = ["a", "b"];
    // the older revision's stream over HTTP opens a little later, and what is said before is lost
    await expect
      .poll(() => {
        if (changed.length === 0) server.push(CHANGED);
        return changed.length;
      }, patient)
      .toBeGreaterThan(0);
    expect(changed[0]).toBe("s");
    expect(await client.listTools()).toHaveLength(2);
  });

  it("are noticed again after the listening was cut, and asked for anew because one may have been missed", async () => {
    if (transport === "stdio" && era === "legacy") return;
    let tools = ["a"];
    const server = await start(stub({ tools: () => tools }));
    const client = connect({ s: server.config });
    await client.listTools();
    if (era === "modern") await expect.poll(() => server.listeners, patient).toBe(1);
    else await client.callTool("s", "a");
    tools = ["a", "b"];
    server.cutListeners();
    // opened again by itself; whoever lists afterwards sees what happened meanwhile
    await expect.poll(async () => (await client.listTools()).length, patient).toBe(2);
    if (era === "modern") await expect.poll(() => server.listeners, patient).toBe(1);
    expect(await client.callTool("s", "a")).toMatchObject({ isError: false });
  });
});

it("tools whose changes cannot be heard of are asked for again after a minute", async () => {
  const onHttp = (req: IncomingMessage, res: ServerResponse) => {
    if (req.method !== "GET") return false;
    res.writeHead(405).end();
    return true;
  };
  const server = await start(stubHttp({ era: "legacy", onHttp }));
  const client = connect({ s: server.config });
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    await client.listTools();
    vi.setSystemTime(Date.now() + 50_000);
    await client.listTools();
    expect(server.count("tools/list")).toBe(1);
    vi.setSystemTime(Date.now() + 11_000);
    await client.listTools();
    expect(server.count("tools/list")).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

describe.each(STUBS)("listening over %s", (_, stub) => {
  it("begins with the first list, not with a call, and once", async () => {
    const server = await start(stub());
    const client = connect({ s: server.config });
    await client.callTool("s", "t");
    expect(server.count("subscriptions/listen")).toBe(0);
    await Promise.all([client.listTools(), client.listTools()]);
    await client.listTools();
    await expect.poll(() => server.listeners, patient).toBe(1);
    expect(server.count("subscriptions/listen")).toBe(1);
    await client.close();
    await expect.poll(() => server.listeners, patient).toBe(0);
  });

  it("is not asked of a server that does not offer it", async () => {
    const server = await start(stub({ capabilities: { tools: {} } }));
    await connect({ s: server.config }).listTools();
    expect(server.count("subscriptions/listen")).toBe(0);
  });

  it("that a server refuses, or never answers, harms nothing", async () => {
    for (const refuse of [true, false]) {
      const server = await start(
        stub({
          on: { "subscriptions/listen": (_request, reply) => (refuse ? reply.error(-32_603, "no") : undefined) },
        }),
      );
      const client = connect({ s: server.config });
      expect(await client.listTools()).toHaveLength(1);
      expect(await client.callTool("s", "t")).toMatchObject({ isError: false });
      expect(client.servers()).toMatchObject([{ health: "up" }]);
      await client.close();
    }
  });
});

describe("a program that forgets to close its client", () => {
  it.each(["modern", "legacy"] as const)("ends all the same while it listens over HTTP (%s)", async (era) => {
    const server = await start(stubHttp({ era }));
    const args = [await program("./stub/forgetful.ts", import.meta.url), server.url];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    const [code] = await once(child, "close");
    expect([code, said]).toEqual([0, "listed 1\n"]);
  });
});

describe("what is known about a server", () => {
  const probes = (server: { count(method: string): number }) => server.count("server/discover");

  it("is not asked again by another client with the same credentials, for as long as the server allows", async () => {
    const server = await start(stubHttp());
    const config = { ...server.config, headers: { Authorization: "Bearer a" } };
    await connect({ s: config }).listTools();
    expect(await connect({ other: config }).listTools()).toHaveLength(1);
    expect(probes(server)).toBe(1);
    await connect({ s: { ...config, headers: { Authorization: "Bearer b" } } }).listTools();
    expect(probes(server)).toBe(2);
    await connect({ s: server.config }).listTools();
    expect(probes(server)).toBe(3);
  });

  it("is asked each time where the server allows no keeping", async () => {
    const capabilities = { tools: {} };
    const discover = () => ({ supportedVersions: ["2026-07-28"], capabilities, ttlMs: 0, cacheScope: "private" });
    const server = await start(stubHttp({ on: { "server/discover": discover } }));
    await connect({ s: server.config }).listTools();
    await connect({ s: server.config }).listTools();
    expect(probes(server)).toBe(2);
  });

  it("that it speaks the older revision is not asked again either", async () => {
    const server = await start(stubHttp({ era: "legacy" }));
    await connect({ s: server.config }).listTools();
    await connect({ s: server.config }).listTools();
    expect(probes(server)).toBe(1);
    expect(server.sessions).toBe(2);
  });

  it.each([
    ["modern", "legacy"],
    ["legacy", "modern"],
  ] as const)("was %s and is %s now: the first call finds out and works", async (before, now) => {
    const old = await start(stubHttp({ era: before }));
    await connect({ s: old.config }).listTools();
    await old.close();
    const anew = await start(stubHttp({ era: now, at: old.port }));
    const client = connect({ s: anew.config });
    expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe('{"n":1}');
    expect(client.servers()).toMatchObject([{ era: now }]);
  });

  it("is asked of a child process in place: one process is started", async () => {
    for (const era of ["modern", "legacy"] as const) {
      const server = await start(stubStdio({ era }));
      await connect({ s: server.config }).listTools();
      expect(server.opened).toBe(1);
    }
  });

  it("is asked of all servers at once", async () => {
    const servers = await Promise.all(Array.from({ length: 10 }, () => start(stubHttp({ delayMs: 300 }))));
    const began = Date.now();
    const client = connect(Object.fromEntries(servers.map(({ config }, n) => [`s${n}`, config])));
    expect(await client.listTools()).toHaveLength(10);
    // one after the other it would be six seconds
    expect(Date.now() - began).toBeLessThan(4_000);
  });
});

const PIPES = ALL_STUBS.filter(([transport]) => transport === "stdio");
describe.each(PIPES)("a call that was given up, over %s, revision %s,", (_, _era, stub) => {
  it("is not heard of any more, whatever its server still says", async () => {
    let late = false;
    const server = await start(
      stub({
        onCall: ({ params, nth }, reply) => {
          if (nth > 1) return { content: [] };
          const { progressToken } = params._meta as { progressToken: number };
          reply.signal.addEventListener("abort", () => {
            reply.notify("notifications/progress", { progressToken, progress: 1 });
            late = true;
          });
          return undefined;
        },
      }),
    );
    const heard: unknown[] = [];
    const client = connect({ s: server.config }, { events: { onProgress: (event) => heard.push(event) } });
    await client.listTools();
    await expect(client.callTool("s", "t", {}, { signal: AbortSignal.timeout(150) })).rejects.toMatchObject({
      code: "cancelled",
    });
    await expect.poll(() => late, patient).toBe(true);
    await client.callTool("s", "t"); // its answer comes after what was said before, on the one pipe
    expect(heard).toEqual([]);
  });
});

describe.each(ALL_STUBS)("a call that is given up, over %s, revision %s", (transport, era, stub) => {
  it.each(["by its caller", "by its time"])("%s is cancelled on the wire", async (how) => {
    let told = false;
    const server = await start(
      stub({
        onCall: (_, reply) => {
          reply.signal.addEventListener("abort", () => {
            told = true;
          });
        },
      }),
    );
    const client = connect({ s: server.config });
    await client.listTools();
    const options = how === "by its time" ? { timeoutMs: 150 } : { signal: AbortSignal.timeout(150) };
    await expect(client.callTool("s", "t", {}, options)).rejects.toMatchObject({
      code: how === "by its time" ? "timeout" : "cancelled",
      maybeExecuted: true,
    });
    const byNotification = transport === "stdio" || era === "legacy";
    if (byNotification) await expect.poll(() => server.count("notifications/cancelled"), patient).toBe(1);
    if (transport === "stdio" || era === "modern") await expect.poll(() => told, patient).toBe(true);
    if (!byNotification) expect(server.count("notifications/cancelled")).toBe(0);
    expect(client.servers()).toMatchObject([{ health: "up" }]);
  });

  it("lives on while it reports progress, up to its total", async () => {
    const server = await start(
      stub({
        onCall: async ({ params }, reply) => {
          const { progressToken } = params._meta as { progressToken: number }; // every call asks for progress
          for (let progress = 1; !reply.signal.aborted && progress < 100; progress++) {
            reply.notify("notifications/progress", { progressToken, progress });
            await new Promise((resolve) => setTimeout(resolve, 60));
            if (progress === 20 && params.name === "t") return { content: [] };
          }
        },
      }),
    );
    const client = connect({ s: server.config });
    const seen: number[] = [];
    const onProgress = ({ progress }: { progress: number }) => void seen.push(progress);
    const limits = { timeoutMs: 1_000, totalTimeoutMs: 30_000, onProgress };
    expect(await client.callTool("s", "t", {}, limits)).toMatchObject({ content: [] });
    expect(seen).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
    const capped = client.callTool("s", "endless", {}, { timeoutMs: 1_000, totalTimeoutMs: 700 });
    await expect(capped).rejects.toMatchObject({ code: "timeout", data: { ms: 700 } });
  });
});

describe("concurrency of a child process", () => {
  /** A server of the older revision whose calls take a while and say their name in the log; and how many ran at once. */
  async function busyServer(ms: number) {
    let running = 0;
    let most = 0;
    const server = await start(
      stubStdio({
        era: "legacy",
        capabilities: { tools: {}, logging: {} },
        onCall: async ({ params }, reply) => {
          most = Math.max(most, ++running);
          await new Promise((resolve) => setTimeout(resolve, ms));
          reply.notify("notifications/message", { level: "info", data: params.name });
          running--;
          return { content: [] };
        },
      }),
    );
    const logs: [unknown, EventSource][] = [];
    const events = { onLog: ({ data }: { data: unknown }, source: EventSource) => void logs.push([data, source]) };
    return { server, events, most: () => most, told: () => logs.map(([data, { tool }]) => [data, tool]) };
  }

  it("of 1 queues calls, so that every log message belongs to one", async () => {
    const { server, events, most, told } = await busyServer(20);
    const client = connect({ s: { ...server.config, concurrency: 1 } }, { events });
    await client.listTools();
    await Promise.all(["a", "b", "c"].map((name) => client.callTool("s", name)));
    expect(most()).toBe(1);
    expect(told()).toEqual(["a", "b", "c"].map((name) => [name, name]));
  });

  it("with a pool runs calls side by side, each in a process with nothing else to do", async () => {
    const { server, events, most, told } = await busyServer(300);
    const client = connect({ s: { ...server.config, pool: 2 } }, { events });
    await client.listTools();
    expect(server.opened).toBe(1);
    const names = ["a", "b", "c", "d"];
    await Promise.all(names.map((name) => client.callTool("s", name)));
    expect(server.opened).toBe(2);
    expect(most()).toBe(2);
    expect(told()).toHaveLength(names.length);
    for (const [data, tool] of told()) expect(data).toBe(tool);
    await client.close();
    await vi.waitFor(() => expect(server.open).toBe(0));
    expect(() => connect({ s: { ...server.config, pool: 2, concurrency: 1 } })).toThrow("give one of the two");
  });

  it("lets a call that was given up while it waits go, and the next have its turn", async () => {
    const server = await start(
      stubStdio({ onCall: async () => new Promise((resolve) => setTimeout(() => resolve({ content: [] }), 300)) }),
    );
    const client = connect({ s: { ...server.config, concurrency: 1 } });
    await client.listTools();
    const first = client.callTool("s", "first");
    const gone = client.callTool("s", "gone", {}, { signal: AbortSignal.timeout(50) });
    const last = client.callTool("s", "last");
    await expect(gone).rejects.toMatchObject({ code: "cancelled", maybeExecuted: false });
    expect(await Promise.all([first, last])).toHaveLength(2);
    expect(server.requests.filter(({ method }) => method === "tools/call").map(({ params }) => params.name)).toEqual([
      "first",
      "last",
    ]);
  });
});

describe.each(ALL_STUBS)("closing, over %s, revision %s", (transport, _, stub) => {
  it.each(["idle", "in a call", "while it opens"])("leaves nothing behind when it is %s", async (when) => {
    const server = await start(
      stub({
        onCall: () => {},
        ...(when === "while it opens" && { on: { "server/discover": () => {}, initialize: () => {} } }),
      }),
    );
    const client = connect({ s: server.config });
    if (when !== "while it opens") await client.listTools();
    const call = when === "idle" ? undefined : client.callTool("s", "t").catch((error: unknown) => error);
    if (call) await expect.poll(() => server.requests.length, patient).toBeGreaterThan(0);
    const began = Date.now();
    await client.close();
    expect(Date.now() - began).toBeLessThan(2_500);
    if (call) expect(await call).toMatchObject({ code: "closed" });
    await expect.poll(() => server.open, patient).toBe(0);
    expect(transport === "stdio" ? server.opened : 1).toBe(1);
  });
});
