import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
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
