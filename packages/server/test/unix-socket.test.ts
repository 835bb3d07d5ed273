import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, renderText } from "@tenon/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ServerOptions, TenonServer } from "../src/index.ts";
import { modern, overSocket } from "./raw-requests.ts";
import { shop } from "./servers.ts";

let folder: string;
const open: TenonServer[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tenon-"));
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
  rmSync(folder, { recursive: true, force: true });
});

function make(options: Partial<ServerOptions> = {}): TenonServer {
  const server = shop(options);
  open.push(server);
  return server;
}

describe("a server on a unix socket", () => {
  it("is reached by @tenon/client, and by this user only", async () => {
    const unixSocket = join(folder, "s");
    const { url, port } = await make().listen({ unixSocket });
    expect([url, port]).toEqual([`unix:${unixSocket}:/mcp`, undefined]);
    expect(statSync(unixSocket).mode & 0o777).toBe(0o600);
    await using client = createClient({ servers: { shop: { url: "http://localhost/mcp", socketPath: unixSocket } } });
    expect(renderText((await client.callTool("shop", "add", { a: 2, b: 3 })).content)).toBe("5");
  });
  it("answers to the loopback names, or to those of allowedHosts: a proxy in front passes on what it was asked", async () => {
    const [plain, named] = [join(folder, "plain"), join(folder, "named")];
    await make().listen({ unixSocket: plain });
    await make({ http: { allowedHosts: ["tools.example"] } }).listen({ unixSocket: named });
    const status = async (socketPath: string, host: string): Promise<number> =>
      (await overSocket({ socketPath, path: "/mcp" }, modern("tools/list", {}, { headers: { host } }))).status;
    expect([await status(plain, "localhost"), await status(plain, "tools.example")]).toEqual([200, 403]);
    expect([await status(named, "localhost"), await status(named, "tools.example")]).toEqual([403, 200]);
  });
  it("leaves no file behind", async () => {
    const unixSocket = join(folder, "s");
    const server = make();
    await server.listen({ unixSocket });
    expect(existsSync(unixSocket)).toBe(true);
    await server.close();
    expect(existsSync(unixSocket)).toBe(false);
  });
  it("takes over what a crashed process left", async () => {
    const [bound, left] = [join(folder, "bound"), join(folder, "left")];
    const crashed = createSocket().listen(bound);
    await once(crashed, "listening");
    renameSync(bound, left); // what closes it removes the name it knows, as a crash would not
    await new Promise((resolve) => crashed.close(resolve));
    await make().listen({ unixSocket: left });
    expect((await overSocket({ socketPath: left, path: "/mcp" }, modern("tools/list"))).status).toBe(200);
  });
  it("does not push out another server, nor a file that is no socket", async () => {
    const [taken, file] = [join(folder, "taken"), join(folder, "file")];
    await make().listen({ unixSocket: taken });
    await expect(make().listen({ unixSocket: taken })).rejects.toMatchObject({
      name: "ConnectionError",
      code: "port_in_use",
      message: `Socket ${taken} is in use; stop the program that has it or choose another path`,
    });
    expect((await overSocket({ socketPath: taken, path: "/mcp" }, modern("tools/list"))).status).toBe(200);
    writeFileSync(file, "data");
    await expect(make().listen({ unixSocket: file })).rejects.toMatchObject({
      code: "unix_socket",
      message: expect.stringContaining("is taken by a file that is no socket; remove it or choose another path"),
    });
    expect(readFileSync(file, "utf8")).toBe("data");
  });
  it.each<[string, () => string, string]>([
    ["a long path", () => join(folder, "x".repeat(120)), "a socket's path may have"],
    ["a folder that is not there", () => join(folder, "none", "s"), "make it first"],
    ["a file for a folder", () => join(folder, "file", "s"), "make it first"],
    ["a folder", () => join(folder, "sub"), "is taken by a file that is no socket"],
    ["nothing", () => "", "is empty; give the path of a socket"],
  ])("does not listen on %s, and says why", async (_, path, why) => {
    writeFileSync(join(folder, "file"), "");
    mkdirSync(join(folder, "sub"));
    await expect(make().listen({ unixSocket: path() })).rejects.toMatchObject({
      name: "ConfigError",
      code: "unix_socket",
      message: expect.stringContaining(why),
    });
  });
  it.each([{ port: 0 }, { host: "127.0.0.1" }])("does not listen on %j as well", async (also) => {
    await expect(make().listen({ unixSocket: join(folder, "s"), ...also })).rejects.toMatchObject({
      code: "listen_options",
    });
  });
});
