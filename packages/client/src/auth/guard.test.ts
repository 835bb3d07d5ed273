import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { reachOf, reachOfHost } from "./addresses.ts";
import { createGuard, guardedLookup } from "./guard.ts";

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});
async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const guardOf = (url: string, more: Parameters<typeof createGuard>[1] = {}) =>
  createGuard({ server: "s", config: { url }, signal: new AbortController().signal }, more);

describe("an address", () => {
  it.each([
    ["127.0.0.1", "loopback"],
    ["::1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["10.1.2.3", "private"],
    ["172.31.0.1", "private"],
    ["192.168.1.1", "private"],
    ["100.64.0.1", "private"],
    ["0.0.0.0", "private"],
    ["::", "private"],
    ["fd12::1", "private"],
    ["64:ff9b::a00:1", "private"],
    ["2002:a00:1::", "private"],
    ["::ffff:10.0.0.1", "private"],
    ["169.254.169.254", "link"],
    ["::ffff:169.254.169.254", "link"],
    ["fd00:ec2::254", "link"],
    ["fe80::1", "link"],
    ["93.184.216.34", "public"],
    ["2606:2800:220:1::1", "public"],
  ] as const)("%s leads to %s", (address, reach) => {
    expect(reachOf(address)).toBe(reach);
  });

  it("in other notations is the same address", () => {
    for (const host of [
      "0x7f.1",
      "2130706433",
      "017700000001",
      "127.1",
      "[::ffff:7f00:1]",
      "localhost",
      "a.localhost",
    ]) {
      expect(reachOfHost(new URL(`http://${host}/`).hostname)).toBe("loopback");
    }
    expect(reachOfHost("example.com")).toBeUndefined();
  });
});

describe("what a public server's metadata may lead to", () => {
  const { check } = guardOf("https://mcp.example/mcp");
  it.each([
    "http://id.example/token",
    "https://127.0.0.1/token",
    "http://localhost:8080/token",
    "https://10.0.0.1/token",
    "https://[fd00::1]/token",
    "https://169.254.169.254/latest/meta-data",
    "https://me:secret@id.example/",
    "file:///etc/passwd",
    "not an address",
  ])("is not %s", (url) => {
    expect(() => check(url, "token endpoint")).toThrow(
      expect.objectContaining({ name: "AuthError", code: "unsafe_url" }),
    );
  });
  it("is any other https address, and its own", () => {
    expect(check("https://id.example/token", "").href).toBe("https://id.example/token");
    expect(check("https://mcp.example/.well-known/x", "").origin).toBe("https://mcp.example");
  });
});

describe("a server in a private network", () => {
  it("may lead into its own kind of network, and never to the link", () => {
    const { check } = guardOf("https://10.0.0.5/mcp");
    expect(check("https://192.168.0.1/token", "").hostname).toBe("192.168.0.1");
    expect(() => check("https://127.0.0.1/token", "")).toThrow(/allowPrivateNetwork/);
    const open = guardOf("https://mcp.example/mcp", { allowPrivateNetwork: true });
    expect(open.check("https://10.0.0.1/token", "").hostname).toBe("10.0.0.1");
    expect(() => open.check("https://169.254.169.254/", "")).toThrow(/private network/);
    expect(() => open.check("http://10.0.0.1/token", "")).toThrow(/not encrypted/);
  });
});

describe("a name", () => {
  const lookup = (addresses: string[]) => {
    let asked = 0;
    const resolve = (_: string, __: object, callback: (error: null, found: LookupAddress[]) => void) => {
      asked++;
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
    };
    const guarded = guardedLookup(
      (reach) => reach === "public",
      (host) => new Error(`${host} is inside`),
      resolve,
    );
    return { guarded, asked: () => asked };
  };

  it("that leads inside is not connected to", async () => {
    const { guarded } = lookup(["127.0.0.1", "::1", "10.0.0.1"]);
    const socket = connect({ host: "rebind.example", port: 1, lookup: guarded });
    const [error] = await once(socket, "error");
    expect(error.message).toBe("rebind.example is inside");
  });

  it("is looked up once, and only its good addresses are used", async () => {
    const { guarded, asked } = lookup(["10.0.0.1", "93.184.216.34"]);
    const found = await new Promise((resolve) => {
      guarded("two.example", { all: true }, (...result) => resolve(result));
    });
    expect(found).toEqual([null, [{ address: "93.184.216.34", family: 4 }]]);
    const single = await new Promise((resolve) => {
      guarded("two.example", {}, (...result) => resolve(result));
    });
    expect(single).toEqual([null, "93.184.216.34", 4]);
    expect(asked()).toBe(2);
  });
});

describe("an answer", () => {
  it("of more than 256 KiB is given up", async () => {
    let sent = 0;
    const url = await serve((_, res) => {
      const more = () => {
        while (!res.destroyed && sent < 64 * 1024 * 1024) {
          sent += 65_536;
          if (!res.write(Buffer.alloc(65_536, "a"))) return res.once("drain", more);
        }
        return undefined;
      };
      more();
    });
    const { fetch } = guardOf(`${url}/mcp`);
    await expect(fetch(`${url}/metadata`)).rejects.toMatchObject({ code: "discovery_failed", message: /262144 bytes/ });
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  it("that never ends is given up in time", async () => {
    const url = await serve((_, res) => void setInterval(() => res.write(" "), 20).unref());
    const { fetch } = guardOf(`${url}/mcp`, { limitMs: 200 });
    await expect(fetch(`${url}/metadata`)).rejects.toMatchObject({
      code: "discovery_failed",
      message: expect.stringContaining("did not answer within 200 ms"),
    });
  });

  it("that never ends is given up when nobody waits any more", async () => {
    const url = await serve((_, res) => void res.write("{"));
    const controller = new AbortController();
    const { fetch } = guardOf(`${url}/mcp`, { signal: controller.signal });
    const asked = fetch(`${url}/metadata`);
    setTimeout(() => controller.abort(), 50);
    await expect(asked).rejects.toMatchObject({ code: "discovery_failed", retryable: true });
  });

  it("that leads elsewhere is not followed", async () => {
    let visited = 0;
    const other = await serve((_, res) => {
      visited++;
      res.end("{}");
    });
    const url = await serve((_, res) => res.writeHead(302, { location: other }).end());
    const answer = await guardOf(`${url}/mcp`).fetch(`${url}/metadata`);
    expect([answer.status, visited]).toEqual([302, 0]);
  });
});
