import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TenonServer } from "../src/index.ts";
import { createServer } from "../src/index.ts";
import { modern, overSocket } from "./raw-requests.ts";

let server: TenonServer;
let url: string;
const origin = "https://console.example";

beforeAll(async () => {
  server = createServer({ name: "shop", version: "1.0.0", http: { allowedOrigins: ["console.example"] } });
  server.tool("ping", {}, () => "pong");
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

describe("a page of an allowed origin", () => {
  it("may ask whether it may call, with the headers a call needs", async () => {
    const { status, headers } = await overSocket(url, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,mcp-method,mcp-name,mcp-param-region",
      },
    });
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-headers": "content-type,mcp-method,mcp-name,mcp-param-region",
    });
    expect(headers["access-control-allow-methods"]).toContain("POST");
    expect(headers["access-control-allow-credentials"]).toBeUndefined();
  });
  it("may read the answer to a call, and a refusal", async () => {
    const answer = await overSocket(url, modern("tools/call", { name: "ping" }, { headers: { origin } }));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("pong");
    expect(answer.headers["access-control-allow-origin"]).toBe(origin);
    expect(answer.headers.vary?.toLowerCase()).toContain("origin");
    const refused = await overSocket(url, { method: "PUT", headers: { origin } });
    expect(refused.status).toBe(405);
    expect(refused.headers["access-control-allow-origin"]).toBe(origin);
  });
});

describe("nobody else gets CORS headers:", () => {
  it("a page of another origin is refused", async () => {
    const { status, headers } = await overSocket(url, {
      method: "OPTIONS",
      headers: { origin: "https://evil.example" },
    });
    expect(status).toBe(403);
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });
  it("a page on this machine may call a server without `allowedOrigins`, but cannot read it from another port", async () => {
    const plain = createServer({ name: "plain", version: "1.0.0" });
    const { url: address } = await plain.listen({ port: 0 });
    const { status, headers } = await overSocket(
      address,
      modern("tools/list", {}, { headers: { origin: "http://localhost:3000" } }),
    );
    await plain.close();
    expect(status).toBe(200);
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });
});

describe("an origin, where a host name would let more in,", () => {
  it("is that one: with its scheme and its port", async () => {
    const exact = createServer({ name: "shop", version: "1.0.0", http: { allowedOrigins: [origin] } });
    exact.tool("ping", {}, () => "pong");
    const listening = await exact.listen({ port: 0 });
    const ask = async (from: string) => {
      const { status, headers } = await overSocket(
        listening.url,
        modern("tools/call", { name: "ping" }, { headers: { origin: from } }),
      );
      return [status, headers["access-control-allow-origin"]];
    };
    expect(await ask(origin)).toEqual([200, origin]);
    for (const other of ["http://console.example", `${origin}:8443`, "https://other.example"]) {
      expect(await ask(other), other).toEqual([403, undefined]);
    }
    await exact.close();
  });
  it("must be one", () => {
    for (const wrong of ["https://console.example/path", "https://", 7]) {
      expect(() => createServer({ name: "shop", version: "1", http: { allowedOrigins: [wrong as string] } })).toThrow(
        /allowedOrigins must be a list of origins/,
      );
    }
  });
});
