import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { stubHttp } from "../test/stub/index.ts";
import { createClient } from "./client.ts";
import { forgetAll } from "./connection/verdicts.ts";
import { renderText } from "./index.ts";
import * as interceptors from "./interceptors/index.ts";
import { checkAnswer } from "./question/index.ts";
import { commandLineOf, formatChanges, reviewTools } from "./trust/index.ts";
import type { ClientOptions } from "./types/client.ts";

const { audit, cache, injectArgs, log, rateLimit, retry, timeout } = interceptors;
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
    [{ servers: { s: { url, command: "x" } } }, "exactly one of url, replicas, service, command and transport"],
    [{ servers: { s: { url: "127.0.0.1" } } }, "http or https address"],
    [{ servers: { s: { url, headers: { a: 1 } } } }, "servers.s.headers.a must be a text"],
    [{ servers: { s: {} } }, "got none"],
    [{ servers: { s: { command: "x", args: ["--port", 1] } } }, "servers.s.args must be a list of texts"],
    [{ servers: { s: { command: "x", cwd: 1 } } }, "servers.s.cwd must be a text"],
    [{ servers: { s: { url, ca: 1 } } }, "servers.s.ca must be a text"],
    [{ servers: { s: { url, ca: "certs/ca.pem" } } }, "servers.s.ca must be certificates as PEM text"],
    [{ servers: { s: { url, ca: ["certs/ca.pem"] } } }, 'readFileSync(path, "utf8")'],
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
  it.each([
    [undefined, "createClient(options) must be an object, got nothing; its options: servers"],
    [null, "got null"],
    ["http://127.0.0.1:1/mcp", "got a value of type string"],
    [{}, "createClient(options).servers must be an object of server configurations"],
  ])("says what it needs when it is given %j", (options, message) => {
    expect(create(options)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    expect(create(options)).toThrow(message);
  });
  it.each([
    ["retry", retry, "retry is a factory; write retry()"],
    ["timeout", timeout, "timeout is a factory; write timeout({ timeoutMs: 20_000 })"],
    ["injectArgs", injectArgs, "injectArgs is a factory; write injectArgs({"],
  ])("refuses the factory %s that was not called", (_, factory, message) => {
    expect(create({ servers: {}, interceptors: [log(), factory] })).toThrow(`interceptors[1]: ${message}`);
  });
  it("knows all the factories it comes with", () => {
    const { redactor: _, ...factories } = interceptors;
    expect(Object.keys(factories)).toHaveLength(8);
    for (const [name, factory] of Object.entries(factories)) {
      expect(create({ servers: {}, interceptors: [factory] })).toThrow(`${name} is a factory`);
    }
  });
  it.each([
    [[null], "interceptors[0] must be a function (request, next) => outcome, got null"],
    [[{}], "got a value of type object"],
    ["retry", "must be a list of functions"],
  ])("refuses the interceptors %j", (given, message) => {
    expect(create({ servers: {}, interceptors: given })).toThrow(message);
  });
  it.each([undefined, null, "x", 5])("says so when a function of the package is given %j instead", (wrong) => {
    const given = wrong as never; // as from a program without types
    const functions = { renderText, reviewTools, commandLineOf, formatChanges, checkAnswer };
    for (const [name, call] of Object.entries(functions as unknown as Record<string, (given: never) => unknown>)) {
      expect(() => call(given)).toThrow(expect.objectContaining({ code: "invalid_option" }));
      expect(() => call(given)).toThrow(name);
    }
    if (wrong !== undefined) expect(() => retry(given)).toThrow("retry(options) must be an object");
    for (const factory of [timeout, rateLimit, cache, audit, injectArgs]) {
      expect(() => (factory as (given: never) => unknown)(given)).toThrow(
        expect.objectContaining({ code: "invalid_option" }),
      );
    }
  });
  it("says so when a whole result is rendered instead of its content", () => {
    expect(() => renderText({ content: [] } as never)).toThrow("give it result.content, not the result");
  });
  it("refuses names and arguments of a call that are no text and no object, before anything is sent", async () => {
    await using client = createClient({ servers: { s: { url } } });
    const wrong = { code: "invalid_option" };
    for (const given of [null, "x", 5, []] as never[]) {
      // may come from a model, which is told what was wrong
      await expect(client.callTool("s", "t", given)).resolves.toMatchObject({ problem: { code: "invalid_arguments" } });
      await expect(client.getPrompt("s", "p", given)).rejects.toMatchObject(wrong);
      await expect(client.callTool("s", "t", {}, given)).rejects.toMatchObject(wrong);
    }
    await expect(client.callTool("s", undefined as never)).rejects.toMatchObject(wrong);
    await expect(client.readResources("s", "file:///a" as never)).rejects.toMatchObject(wrong);
    await expect(client.callTool(undefined as never, "t")).rejects.toMatchObject({ code: "unknown_server" });
    await expect(client.dispatch(undefined as never)).rejects.toMatchObject({ code: "unknown_tool" });
  });
  it("names the server that was probably meant, and those there are", async () => {
    await using client = createClient({ servers: { orders: { url }, mail: { url } } });
    const near = { code: "unknown_server", maybeExecuted: false, data: { name: "order", near: "orders" } };
    const asking = [
      client.callTool("order", "t"),
      client.listTools("order"),
      client.listResources("order"),
      client.readResources("order", []),
      client.getPrompt("order", "p"),
    ];
    for (const asked of asking) {
      await expect(asked).rejects.toMatchObject(near);
      await expect(asked).rejects.toThrow('did you mean "orders"? (configured servers: orders, mail)');
    }
    await expect(client.callTool("shop", "t")).rejects.toThrow("configured servers: orders, mail");
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
    forgetAll(); // a stub of this file may have had the port
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
