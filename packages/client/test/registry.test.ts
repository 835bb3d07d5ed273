import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TenonError } from "@tenon/core";
import { afterEach, describe, expect, it } from "vitest";
import { consulStub } from "../../../test/consul.ts";
import type { ReplicaConfig } from "../src/index.ts";
import { consulRegistry, fileRegistry, mcpRegistry, type Registry, staticRegistry } from "../src/registry/index.ts";
import { closeAfterEach, start } from "./stub/index.ts";

closeAfterEach();
const registries: Registry[] = [];
afterEach(async () => void (await Promise.all(registries.splice(0).map((registry) => registry.close()))));

function closed(registry: Registry): Registry {
  registries.push(registry);
  return registry;
}

/** What a listener was told, in order: addresses, or the code of a problem. */
function listen(registry: Registry, service = "kb") {
  const told: (string[] | string)[] = [];
  const stop = registry.watch(service, {
    onReplicas: (replicas: readonly ReplicaConfig[]) => void told.push(replicas.map(({ id, url }) => id ?? url)),
    onProblem: ({ code }: TenonError) => void told.push(code),
  });
  return { told, stop, last: () => told.at(-1) };
}

const instance = (n: number, more: object = {}) => ({
  ID: `kb-${n}`,
  Name: "kb",
  Address: `10.0.0.${n}`,
  Port: 8000,
  ...more,
});

describe("a registry that is written down", () => {
  it("knows its services, and no other", async () => {
    const registry = staticRegistry({
      kb: ["http://a/mcp", { url: "http://b/mcp", id: "b", capabilities: ["tools.execute"] }],
    });
    expect(await registry.replicas("kb")).toEqual([
      { url: "http://a/mcp" },
      { url: "http://b/mcp", id: "b", capabilities: ["tools.execute"] },
    ]);
    expect(await registry.replicas("other")).toEqual([]);
    expect(() => staticRegistry({ kb: ["ftp://a"] })).toThrow(
      "staticRegistry(services).kb[0] must be an http or https address",
    );
  });
});

describe("a registry in a file", () => {
  const scene = () => {
    const file = join(mkdtempSync(join(tmpdir(), "tenon-registry-")), "services.json");
    const write = (content: unknown) => {
      writeFileSync(`${file}.new`, typeof content === "string" ? content : JSON.stringify(content));
      renameSync(`${file}.new`, file);
    };
    return { file, write, registry: closed(fileRegistry(file, { pollMs: 200 })) };
  };

  it("tells what it says, and what replaces it", async () => {
    const { write, registry } = scene();
    write({ kb: ["http://a/mcp"] });
    const { told, stop } = listen(registry);
    await expect.poll(() => told).toEqual([["http://a/mcp"]]);
    write({ kb: ["http://a/mcp", { id: "b", url: "http://b/mcp" }], other: [] });
    await expect.poll(() => told).toEqual([["http://a/mcp"], ["http://a/mcp", "b"]]);
    stop();
    write({ kb: [] });
    expect(await registry.replicas("kb")).toEqual([]);
    expect(told).toHaveLength(2);
  });

  it.each([
    ["half of it", '{"kb": ["http://'],
    ["a service that is no list", { kb: "http://a/mcp" }],
    ["an entry without an address", { kb: [{ id: "a" }] }],
    ["a list", []],
  ])("keeps what it said last when it holds %s, says so, and goes on", async (_, content) => {
    const { write, registry } = scene();
    write({ kb: ["http://a/mcp"] });
    const { told, last } = listen(registry);
    await expect.poll(last).toEqual(["http://a/mcp"]);
    write(content);
    await expect.poll(last).toBe("bad_registry");
    expect(await registry.replicas("kb")).toEqual([{ url: "http://a/mcp" }]);
    write({ kb: ["http://c/mcp"] });
    await expect.poll(last, { timeout: 3_000 }).toEqual(["http://c/mcp"]);
    expect(told.filter((one) => one !== "bad_registry")).toHaveLength(2);
  });

  it("is an error to whoever asks once, while it is not there", async () => {
    const { registry } = scene();
    await expect(registry.replicas("kb")).rejects.toMatchObject({ code: "registry_unreachable", retryable: true });
    const { last } = listen(registry);
    await expect.poll(last).toBe("registry_unreachable");
  });
});

describe("a Consul registry", () => {
  it("waits at Consul for changes: instances come, fail their check and leave", async () => {
    const consul = await start(consulStub("secret"));
    consul.add(instance(1));
    const registry = closed(consulRegistry({ url: consul.url, token: "secret", waitMs: 5_000 }));
    const { told, stop } = listen(registry);
    await expect.poll(() => told).toEqual([["kb-1"]]);
    await expect.poll(() => consul.waiting).toBe(1);
    consul.add(instance(2));
    await expect.poll(() => told.at(-1)).toEqual(["kb-1", "kb-2"]);
    consul.setHealth("kb-1", false);
    await expect.poll(() => told.at(-1)).toEqual(["kb-2"]);
    consul.remove("kb-2");
    await expect.poll(() => told.at(-1)).toEqual([]);
    const asked = consul.requests.length;
    expect(asked).toBeLessThan(10);
    expect(consul.requests[0]).toBe("GET /v1/health/service/kb?passing=true");
    expect(consul.requests[1]).toMatch(/&index=\d+&wait=5000ms$/);
    expect(new Set(consul.tokens)).toEqual(new Set(["secret"]));
    stop();
    await expect.poll(() => consul.waiting).toBe(0);
    consul.add(instance(3));
    expect(told.at(-1)).toEqual([]);
  });

  it("takes the address that an instance registered for MCP, else host and port", async () => {
    const consul = await start(consulStub());
    consul.add(
      instance(1, { Meta: { mcp_url: "https://kb.example/deep/mcp", mcp_capabilities: "tools.execute, tools.list" } }),
    );
    consul.add(instance(2, { Address: "" }));
    consul.add(instance(3, { Address: "fd00::7" }));
    consul.add({ ID: "no-port", Name: "kb", Address: "10.0.0.9" });
    consul.add(instance(4, { Meta: { mcp_url: "not an address" } }));
    const registry = closed(consulRegistry({ url: consul.url }));
    expect(await registry.replicas("kb")).toEqual([
      { id: "kb-1", url: "https://kb.example/deep/mcp", capabilities: ["tools.execute", "tools.list"] },
      { id: "kb-2", url: "http://127.0.0.1:8000/mcp" },
      { id: "kb-3", url: "http://[fd00::7]:8000/mcp" },
      { id: "kb-4", url: "http://10.0.0.4:8000/mcp" },
    ]);
  });

  it.each([
    ["fails", 500, "registry_unreachable"],
    ["is cut off", "cut", "registry_unreachable"],
    ["says nonsense", { not: "a list" }, "bad_registry"],
  ] as const)("keeps what it said last while Consul %s, says so, and hears the next change", async (_, how, code) => {
    const consul = await start(consulStub());
    consul.add(instance(1));
    const registry = closed(consulRegistry({ url: consul.url }));
    const { told, last } = listen(registry);
    await expect.poll(last).toEqual(["kb-1"]);
    if (typeof how === "object") consul.say(how);
    else consul.fail(how);
    await expect.poll(last).toBe(code);
    expect(await registry.replicas("kb")).toHaveLength(1);
    consul.say(undefined);
    consul.fail(undefined);
    consul.add(instance(2));
    await expect.poll(last, { timeout: 5_000 }).toEqual(["kb-1", "kb-2"]);
    expect(told[0]).toEqual(["kb-1"]);
  });

  it("begins anew when the index goes backwards, and asks no faster for it", async () => {
    const consul = await start(consulStub());
    for (const n of [1, 2, 3]) consul.add(instance(n));
    const registry = closed(consulRegistry({ url: consul.url }));
    const { last } = listen(registry);
    await expect.poll(last).toEqual(["kb-1", "kb-2", "kb-3"]);
    await expect.poll(() => consul.waiting).toBe(1);
    consul.forget();
    await expect.poll(last).toEqual([]);
    consul.add(instance(7));
    await expect.poll(last, { timeout: 5_000 }).toEqual(["kb-7"]);
    expect(consul.requests.length).toBeLessThan(10);
  });

  it("sends its token over https or to this machine only", () => {
    const options = { url: "http://consul.internal:8500", token: "secret" };
    expect(() => consulRegistry(options)).toThrow("would be sent unencrypted to consul.internal");
    expect(() => consulRegistry(options)).not.toThrow("secret");
  });

  it("says what to do about a token that is refused", async () => {
    const consul = await start(consulStub("right"));
    const registry = closed(consulRegistry({ url: consul.url, token: "wrong" }));
    const refused = registry.replicas("kb");
    await expect(refused).rejects.toMatchObject({ code: "registry_unreachable" });
    await expect(refused).rejects.toThrow(/HTTP 403.*give it a token that may read/);
  });
});

describe("a registry of the official format", () => {
  type Page = { servers: unknown[]; metadata?: object };
  const scene = async (answers: (url: URL) => Page | number) => {
    const asked: string[] = [];
    const server = createServer((req, res) => {
      const url = new URL(req.url ?? "/", "http://registry");
      asked.push(`${url.pathname}${url.search}`);
      const answer = answers(url);
      if (typeof answer === "number") return void res.writeHead(answer).end();
      res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const close = async () => {
      server.close();
      server.closeAllConnections();
    };
    registries.push({ close } as Registry);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { asked, registry: closed(mcpRegistry({ url, refreshMs: 200 })) };
  };
  const entry = (name: string, urls: string[], official: object = {}) => ({
    server: { name, version: "1.0.0", remotes: urls.map((url) => ({ type: "streamable-http", url })) },
    _meta: { "io.modelcontextprotocol.registry/official": official },
  });

  it("finds a server by its name, page by page", async () => {
    const { registry, asked } = await scene((url) =>
      url.searchParams.get("cursor") === "more"
        ? { servers: [entry("io.github.acme/kb", ["https://kb.example/mcp"], { isLatest: true })], metadata: {} }
        : {
            servers: [entry("io.github.acme/kb-admin", ["https://admin.example/mcp"])],
            metadata: { nextCursor: "more" },
          },
    );
    expect(await registry.replicas("io.github.acme/kb")).toEqual([{ url: "https://kb.example/mcp" }]);
    expect(asked).toEqual([
      "/v0.1/servers?search=io.github.acme%2Fkb&version=latest&limit=100",
      "/v0.1/servers?search=io.github.acme%2Fkb&version=latest&limit=100&cursor=more",
    ]);
  });

  it("takes Streamable HTTP that needs nothing filled in, of the latest version that was not deleted", async () => {
    const name = "a/kb";
    const remotes = [
      { type: "sse", url: "https://old.example/sse" },
      { type: "streamable-http", url: "https://{tenant}.example/mcp" },
      { type: "streamable-http", url: "https://kb.example/mcp", headers: [{ name: "X-Key" }] },
    ];
    const latest = { ...entry(name, [], { isLatest: true }), server: { name, remotes } };
    const servers = [
      entry(name, ["https://gone.example/mcp"], { status: "deleted", isLatest: true }),
      entry(name, ["https://v1.example/mcp"]),
      latest,
    ];
    const { registry } = await scene(() => ({ servers }));
    expect(await registry.replicas(name)).toEqual([{ url: "https://kb.example/mcp" }]);
  });

  it("asks an older registry by the older version of the API, whose entries stand bare", async () => {
    const { server } = entry("a/kb", ["https://kb.example/mcp"]);
    const { registry, asked } = await scene((url) => (url.pathname === "/v0/servers" ? { servers: [server] } : 404));
    expect(await registry.replicas("a/kb")).toEqual([{ url: "https://kb.example/mcp" }]);
    await registry.replicas("a/kb");
    expect(asked.map((path) => path.split("?")[0])).toEqual(["/v0.1/servers", "/v0/servers", "/v0/servers"]);
  });

  it("looks again now and then, and does not follow pages without end", async () => {
    let urls = ["https://one.example/mcp"];
    let endless = false;
    const { registry } = await scene(() =>
      endless ? { servers: [], metadata: { nextCursor: "again" } } : { servers: [entry("a/kb", urls)] },
    );
    const { last } = listen(registry, "a/kb");
    await expect.poll(last).toEqual(["https://one.example/mcp"]);
    urls = ["https://two.example/mcp"];
    await expect.poll(last).toEqual(["https://two.example/mcp"]);
    endless = true;
    await expect.poll(last).toBe("bad_registry");
  });
});
