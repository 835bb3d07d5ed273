import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type ConsulStub, consulStub } from "../../../test/consul.ts";
import { createServer, type ListenOptions, type LogEntry } from "../src/index.ts";
import { type ConsulOptions, consul } from "../src/register/index.ts";

const closing: { close(): Promise<unknown> }[] = [];
afterEach(async () => void (await Promise.all(closing.splice(0).map((one) => one.close()))));

function kept<C extends { close(): Promise<unknown> }>(one: C): C {
  closing.push(one);
  return one;
}

async function serving(
  stub: Pick<ConsulStub, "url">,
  options: Partial<ConsulOptions> = {},
  listen: Partial<ListenOptions> = {},
) {
  const lines: LogEntry[] = [];
  const server = kept(createServer({ name: "kb", version: "1.2.3", logSink: (line) => void lines.push(line) }));
  server.tool("search", {}, () => "found");
  const register = consul({ url: stub.url, checkIntervalMs: 60, ...options });
  const listening = await server.listen({ port: 0, register, ...listen });
  return { server, listening, lines, warnings: () => lines.filter(({ level }) => level === "warning") };
}

describe("a server that registers itself with Consul", () => {
  it("is there, healthy and with what it can do, while it listens", async () => {
    const stub = kept(await consulStub("secret"));
    const { server, listening } = await serving(stub, { token: "secret" });
    const id = `kb-127.0.0.1-${listening.port}`;
    await expect.poll(() => stub.status(id)).toBe("passing");
    expect(stub.instances.get(id)).toMatchObject({
      Name: "kb",
      Address: "127.0.0.1",
      Port: listening.port,
      Tags: ["mcp"],
      Meta: { mcp_url: listening.url, mcp_version: "1.2.3", mcp_capabilities: "tools.list,tools.execute" },
      Check: { TTL: "1s", DeregisterCriticalServiceAfter: "10m" },
    });
    await server.close();
    expect(stub.instances.size).toBe(0);
    const asked = stub.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(stub.requests).toHaveLength(asked);
  });

  it("is out of it before it stops to answer", async () => {
    const stub = kept(await consulStub());
    const { server, listening } = await serving(stub);
    await expect.poll(() => stub.instances.size).toBe(1);
    const answers = async () => (await fetch(listening.url, { method: "POST" })).status;
    let open = true;
    const during = (async () => {
      while (stub.instances.size > 0 && open) expect(await answers()).toBeGreaterThan(0);
    })();
    await server.close();
    open = false;
    await during;
    expect(stub.instances.size).toBe(0);
  });

  it("tells it again when the agent forgot it, and when it can do more", async () => {
    const stub = kept(await consulStub());
    const { server } = await serving(stub);
    await expect.poll(() => stub.instances.size).toBe(1);
    stub.forget();
    await expect.poll(() => stub.instances.size).toBe(1);
    server.prompt("hello", {}, () => "hello");
    const words = () => [...stub.instances.values()][0]?.Meta?.mcp_capabilities;
    await expect.poll(words).toContain("tools.list,tools.execute,prompts.list,prompts.get");
  });

  it("serves without it, says so once, and is there when Consul is back", async () => {
    const stub = kept(await consulStub());
    stub.fail(500);
    const { listening, warnings } = await serving(stub);
    expect((await fetch(listening.url, { method: "POST" })).status).toBeGreaterThan(0);
    await expect.poll(() => stub.requests.length).toBeGreaterThan(3);
    expect(warnings()).toHaveLength(1);
    expect(warnings()[0]?.message).toBe("Consul does not answer as it should; tried again: HTTP 500");
    stub.fail(undefined);
    await expect.poll(() => stub.instances.size).toBe(1);
  });

  it("closes within a second or so of a Consul that never answers", async () => {
    const silent = createHttpServer(() => {}).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const close = async () => {
      silent.closeAllConnections();
      silent.close();
    };
    const { port } = silent.address() as AddressInfo;
    const { server } = await serving(kept({ url: `http://127.0.0.1:${port}`, close }));
    const began = performance.now();
    await server.close();
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it("has its health asked for by Consul where an address for that is given", async () => {
    const stub = kept(await consulStub());
    const health = "http://127.0.0.1:9030/readyz";
    await serving(stub, { health, id: "mine", endpoint: "https://kb.example/mcp", tags: ["mcp", "blue"] });
    await expect.poll(() => stub.instances.get("mine")).toBeDefined();
    expect(stub.instances.get("mine")).toMatchObject({
      Tags: ["mcp", "blue"],
      Meta: { mcp_url: "https://kb.example/mcp" },
      Check: { HTTP: health, Interval: "1s" },
    });
    stub.forget();
    await expect.poll(() => stub.instances.size).toBe(1);
  });

  it("needs an address that clients can reach", async () => {
    const stub = kept(await consulStub());
    const everywhere = { host: "0.0.0.0" };
    const server = createServer({
      name: "kb",
      version: "1",
      http: { allowedHosts: ["kb.example"] },
      logSink: () => {},
    });
    kept(server);
    const listen = (options: Partial<ConsulOptions>) =>
      server.listen({ port: 0, ...everywhere, register: consul({ url: stub.url, ...options }) });
    await expect(listen({})).rejects.toThrow("consul(options) needs an address: the server listens on 0.0.0.0");
    const { port } = await listen({ address: "10.0.0.7" });
    await expect.poll(() => [...stub.instances.values()][0]?.Meta?.mcp_url).toBe(`http://10.0.0.7:${port}/mcp`);
  });

  it.each([
    [{ register: consul }, "must be made by a function of @tenon/server/register"],
    [{ register: consul({ url: "http://127.0.0.1:1" }), unixSocket: "/tmp/never.sock", port: undefined }, "unixSocket"],
  ])("is not taken from %o", async (options, message) => {
    const server = kept(createServer({ name: "kb", version: "1", logSink: () => {} }));
    await expect(server.listen({ port: 0, ...options } as never)).rejects.toThrow(message);
  });

  it("sends its token over https or to this machine only", () => {
    expect(() => consul({ url: "http://consul.internal:8500", token: "t" })).toThrow("unencrypted to consul.internal");
  });
});
