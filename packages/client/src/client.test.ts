import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { stubHttp } from "../test/stub/index.ts";
import { createClient } from "./client.ts";
import type { ClientOptions } from "./types/client.ts";

const create = (options: unknown) => () => createClient(options as ClientOptions);
const url = "http://127.0.0.1:1/mcp";

describe("createClient", () => {
  it("connects to nothing until it is used", async () => {
    const client = createClient({ servers: { s: { url } } });
    expect(client.servers()).toEqual([{ server: "s", health: "idle", problems: [] }]);
    expect(client.elicitation).toBe("none");
    await client.close();
  });
  it.each([
    [{ servers: {}, interceptor: [] }, 'did you mean "interceptors"?'],
    [{ servers: {}, events: { onProgres: 1 } }, 'did you mean "onProgress"?'],
    [{ servers: { s: { url, header: {} } } }, 'servers.s has no option "header"; did you mean "headers"?'],
    [{ servers: { s: { comand: "x" } } }, 'did you mean "command"?'],
    [{ servers: { s: { url, command: "x" } } }, "exactly one of url, command and transport"],
    [{ servers: { s: { url: "127.0.0.1" } } }, "http or https address"],
    [{ servers: { s: { url, headers: { a: 1 } } } }, "servers.s.headers.a must be a text"],
    [{ servers: { s: {} } }, "got none"],
    [{ servers: { s: { command: "x", args: ["--port", 1] } } }, "servers.s.args must be a list of texts"],
    [{ servers: { s: { command: "x", cwd: 1 } } }, "servers.s.cwd must be a text"],
    [{ servers: { s: { url, required: "no" } } }, "servers.s.required must be true or false"],
    [{ servers: { s: { url, timeoutMs: Number.POSITIVE_INFINITY } } }, "at most 2147483647, got Infinity"],
    [
      { servers: { s: { url, connectTimeoutMs: "5s" } } },
      'a positive number of milliseconds, at most 2147483647, got "5s"',
    ],
    [{ servers: {}, naming: "short" }, "naming must be one of prefixed, plain"],
    [{ servers: {}, elicitation: true }, "elicitation must be one of interrupt"],
    [{ servers: {}, logLevel: "verbose" }, "logLevel must be one of"],
  ])("refuses %j", (options, message) => {
    expect(create(options)).toThrow(message);
  });
  it("refuses unknown options of a call", async () => {
    await using client = createClient({ servers: { s: { url } } });
    await expect(client.callTool("s", "t", {}, { timeout: 1 } as never)).rejects.toThrow('no option "timeout"');
  });
  it("refuses a time limit that no timer can keep, before anything is sent", async () => {
    await using client = createClient({ servers: { s: { url } } });
    for (const limit of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "5s"]) {
      const wrong = { code: "invalid_option", message: expect.stringContaining("milliseconds") };
      const options = { timeoutMs: limit as number };
      await expect(client.callTool("s", "t", {}, options)).rejects.toMatchObject(wrong);
      await expect(client.readResources("s", [], options)).rejects.toMatchObject(wrong);
      await expect(client.getPrompt("s", "p", {}, { totalTimeoutMs: limit as number })).rejects.toMatchObject(wrong);
    }
  });
  it("says nothing of the value of a header or variable that is no text", () => {
    const secret = { servers: { s: { command: "x", env: { PIN: 4711 } } } };
    expect(create(secret)).toThrow("servers.s.env.PIN must be a text, got number");
    expect(create(secret)).not.toThrow("4711");
  });
  it("keeps what may be a credential in an address out of its errors", async () => {
    const address = "http://me:hunter2@127.0.0.1:1/mcp?key=hunter3";
    await using client = createClient({ servers: { s: { url: address } } });
    const error = await client.callTool("s", "t").catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("http://127.0.0.1:1/mcp?…");
    const told = JSON.stringify([error, String(error), client.servers()]);
    expect(told).not.toMatch(/hunter/);
  });
  it("takes an option that is undefined for one that is not given", async () => {
    const stub = await stubHttp({ onCall: () => new Promise(() => {}) });
    try {
      await using client = createClient({ servers: { s: { url: stub.config.url, timeoutMs: 300 } } });
      const limited = client.callTool("s", "slow", {}, { timeoutMs: undefined });
      await expect(limited).rejects.toMatchObject({ code: "timeout", data: { ms: 300 } });
    } finally {
      await stub.close();
    }
  });
  it("makes many calls at the same time without a warning of Node", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    // a server that takes its time: all calls are in flight together
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo; // a TCP server that listens
    const client = createClient({ servers: { s: { url: `http://127.0.0.1:${port}/mcp`, connectTimeoutMs: 200 } } });
    await Promise.allSettled(Array.from({ length: 30 }, () => client.callTool("s", "t")));
    await client.close();
    silent.closeAllConnections();
    silent.close();
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });
  it("introduces itself with the version of the package", () => {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
    expect(readFileSync(new URL("./hooks.ts", import.meta.url), "utf8")).toContain(`version: "${version}"`);
  });
});
