import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "@tenon/core";
import { openMemory } from "@tenon/store";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createServer } from "../server.ts";

/** A server with an admin port, and what its paths answer. */
async function administered(options: Partial<Parameters<typeof createServer>[0]> = {}) {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => undefined, ...options });
  onTestFinished(() => server.close());
  const admin = await server.admin({ port: 0 });
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${admin.url}${path}`, init);
    return { status: response.status, body: await response.json() };
  };
  return { server, admin, ask };
}

describe("the admin port", () => {
  it("says that the process lives and takes requests, to GET and HEAD, and nothing else", async () => {
    const { admin, ask } = await administered();
    expect(admin.url).toBe(`http://127.0.0.1:${admin.port}`);
    expect(await ask("/healthz")).toEqual({ status: 200, body: { status: "ok" } });
    expect(await ask("/readyz?verbose")).toEqual({ status: 200, body: { status: "ready" } });
    const head = await fetch(`${admin.url}/readyz`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await ask("/readyz", { method: "POST", body: "x" })).status).toBe(405);
    expect((await ask("/mcp", { method: "POST", body: "{}" })).status).toBe(404);
    expect((await ask("/")).status).toBe(404);
  });

  it("is not the port of the protocol, which knows nothing of it", async () => {
    const { server, admin } = await administered();
    const { url, port } = await server.listen({ port: 0 });
    expect(port).not.toBe(admin.port);
    expect((await fetch(new URL("/healthz", url))).status).toBe(404);
  });

  it("says what is missing while the store or what the lifespan opens does not answer, and that the process lives", async () => {
    const stores = openMemory();
    let away = true;
    const getBlob = () => (away ? Promise.reject(new Error("refused at 10.0.0.7")) : Promise.resolve(undefined));
    const store = { ...stores, outcomes: { ...stores.outcomes, getBlob } };
    let opens = 0;
    const lifespan = async () => {
      opens += 1;
      if (opens === 1) throw new Error("no pool");
      return { value: undefined };
    };
    const { ask } = await administered({ store, lifespan });
    expect(await ask("/readyz")).toEqual({ status: 503, body: { status: "not ready", missing: "lifespan" } });
    expect(await ask("/readyz")).toEqual({ status: 503, body: { status: "not ready", missing: "store" } });
    expect((await ask("/healthz")).status).toBe(200);
    away = false;
    expect((await ask("/readyz")).status).toBe(200);
  });

  it("asks a store that hangs once for all probes, and does not hang with it", async () => {
    const stores = openMemory();
    const getBlob = vi.fn(() => new Promise<undefined>(() => undefined));
    const { ask } = await administered({
      store: { ...stores, outcomes: { ...stores.outcomes, getBlob } },
    });
    const answers = await Promise.all([ask("/readyz"), ask("/readyz"), ask("/readyz")]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(getBlob).toHaveBeenCalledTimes(1);
  });

  it("asks what else must answer, and names what does not", async () => {
    let workers = 1;
    const server = createServer({ name: "shop", version: "1.0.0", logSink: () => undefined });
    onTestFinished(() => server.close());
    const needs = {
      workers: async () => {
        if (workers < 2) throw new Error("1 of 2 workers");
      },
    };
    const { url } = await server.admin({ port: 0, needs });
    const ask = async () => (await fetch(`${url}/readyz`)).json();
    expect(await ask()).toEqual({ status: "not ready", missing: "workers" });
    workers = 2;
    expect(await ask()).toEqual({ status: "ready" });
  });

  it("is not ready while the server closes, and gone once it is closed", async () => {
    let end: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { server, ask } = await administered({ lifespan: async () => ({ value: undefined, close: () => held }) });
    expect((await ask("/readyz")).status).toBe(200);
    const closing = server.close();
    expect(await ask("/readyz")).toEqual({ status: 503, body: { status: "not ready", missing: "closing" } });
    expect((await ask("/healthz")).status).toBe(200);
    end();
    await closing;
    await expect(ask("/healthz")).rejects.toThrow();
  });

  it("names a port that is taken, and refuses options it does not know", async () => {
    const other = createHttpServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo; // a TCP server that listens
    const server = createServer({ name: "shop", version: "1.0.0" });
    await expect(server.admin({ port })).rejects.toMatchObject({ code: "port_in_use" });
    // @ts-expect-error: no such option
    await expect(server.admin({ ports: 1 })).rejects.toThrow(/did you mean "port"/);
    // @ts-expect-error: a port is needed
    await expect(server.admin({})).rejects.toThrow(ConfigError);
  });
});
