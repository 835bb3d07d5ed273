import { createHmac } from "node:crypto";
import { newContractKey } from "@tenon/core/contract";
import { canonicalJson } from "@tenon/core/internal";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { jwt } from "../src/auth/index.ts";
import { createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import { CONTEXT, desk } from "./contract-server.ts";
import { overSocket } from "./raw-requests.ts";
import { accepts, bearer, createSigner, sign } from "./tokens.ts";

const good = { user_id: "alice", session_id: "s1" };
const secret = "a plain secret that is long enough for HMAC";

let server: TenonServer;
let url: string;
beforeAll(async () => {
  vi.stubEnv("MCP_SERVER_SECRET", secret);
  server = desk();
  ({ url } = await server.listen({ port: 0 }));
  vi.unstubAllEnvs();
});
afterAll(() => server.close());

type Message = {
  jsonrpc: string;
  id: unknown;
  result?: Record<string, never>;
  error?: { code: number; data?: unknown };
};
async function post(endpoint: string, body: unknown, headers: Record<string, string> = {}, to = url) {
  const answer = await overSocket(`${to}/${endpoint}`, {
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { ...answer, message: answer.messages[0] as Message };
}
const handshake = (params: unknown = {}, more: object = {}) =>
  post("handshake", { jsonrpc: "2.0", id: 7, method: "mcp.handshake", params, ...more });

describe("the handshake of older clients", () => {
  it.each(["2.0", "3.0"])(
    "answers an envelope of JSON-RPC %s in kind, with everything the server declares",
    async (jsonrpc) => {
      const { status, message } = await handshake({}, { jsonrpc });
      expect(status).toBe(200);
      expect(message).toMatchObject({
        jsonrpc,
        id: 7,
        result: {
          server_id: "desk",
          version: "0.4.2",
          protocol_version: "0.4.2",
          authentication: { type: "none" },
          context_schema: { required: ["user_id", "session_id"] },
        },
      });
      expect(message.result?.capabilities).toContain("tools.execute");
      expect(Date.parse(String(message.result?.next_rotation_time))).toBeGreaterThan(Date.now());
    },
  );
  it("is signed over its four fields with the plain secret", async () => {
    const { server_id, version, capabilities, context_schema, signature } = (await handshake()).message.result ?? {};
    const bytes = canonicalJson({ server_id, version, capabilities, context_schema });
    expect(signature).toBe(`sha256-hmac:${createHmac("sha256", secret).update(bytes).digest("hex")}`);
  });
  it.each([
    ["no params", undefined],
    ["a version", { protocol_version: "0.4.2" }],
    ["a version by its other name", { version: "0.4.2" }],
    ["capabilities it needs", { capabilities: ["tools.execute"], required_capabilities: ["x.y"] }],
    ["a good context", { context: good }],
  ])("succeeds with %s, and the list is always the whole one", async (_, params) => {
    const whole = (await handshake()).message.result?.capabilities;
    expect((await handshake(params)).message.result?.capabilities).toEqual(whole);
  });
  it.each([
    ["another version", { params: { protocol_version: "9.9" } }, 200, -32601, "Unsupported protocol version"],
    ["another method", { method: "mcp.hello" }, 200, -32601, "Method not found: mcp.hello"],
    ["a context without a field", { params: { context: { user_id: "a" } } }, 200, -32001, "session_id"],
    ["an empty field", { params: { context: { ...good, user_id: "" } } }, 200, -32001, "user_id"],
    ["a wrong value", { params: { context: { ...good, user_id: 7 } } }, 200, -32002, "user_id"],
    ["params that are a list", { params: [] }, 200, -32602, "params must be an object"],
    ["another JSON-RPC", { jsonrpc: "1.0" }, 400, -32600, "jsonrpc must be"],
    ["no JSON-RPC", { jsonrpc: undefined }, 400, -32600, "jsonrpc must be"],
    ["a method that is a number", { method: 1 }, 400, -32600, "method must be a text"],
    ["an id that is an object", { id: {} }, 400, -32600, "id must be"],
  ])("refuses %s", async (_, more, status, code, words) => {
    const answer = await handshake({}, more);
    expect(answer.status).toBe(status);
    expect(answer.message.error).toMatchObject({ code, message: expect.stringContaining(words) });
  });
  it.each([
    ["not json", -32000],
    ["[]", -32600],
    ["7", -32600],
  ])("refuses the body %s", async (body, code) => {
    const { status, message } = await post("handshake", body);
    expect([status, message.error?.code]).toEqual([400, code]);
  });
  it("takes JSON by POST and nothing else", async () => {
    const get = await overSocket(`${url}/handshake`, { method: "GET" });
    expect([get.status, get.headers.allow]).toEqual([405, "POST"]);
    expect((await post("handshake", "{}", { "content-type": "text/plain" })).status).toBe(415);
    expect((await post("handshake", "{}", { "content-encoding": "gzip" })).status).toBe(415);
    expect((await post("handshake", " ".repeat(5 * 1024 * 1024))).status).toBe(413);
  });
  it("looks at Host and Origin as the protocol's endpoint does", async () => {
    expect((await post("handshake", "{}", { host: "evil.example" })).status).toBe(403);
    expect((await post("handshake", "{}", { origin: "https://evil.example" })).status).toBe(403);
  });
});

describe("the other endpoints of older clients", () => {
  const execute = { context: good, tool_name: "who", arguments: {} };
  it.each([
    ["bare", execute, null],
    ["as a request", { jsonrpc: "2.0", id: "a", method: "mcp.tools.execute", params: execute }, "a"],
    ["as another request", { jsonrpc: "3.0", id: 1, method: "tools/execute", params: execute }, 1],
  ])("run a tool: %s", async (_, body, id) => {
    const { message } = await post("tools/execute", body);
    expect(message).toMatchObject({ id, result: { structuredContent: { context: good, session: "s1" } } });
  });
  it.each([
    ["no context", { tool_name: "who" }, -32001, { reason: "missing_context_field", field: "user_id" }],
    ["a wrong context", { ...execute, context: "x" }, -32002, { reason: "invalid_context_value", field: "context" }],
    ["no tool", { context: good }, -32602, undefined],
    ["an unknown tool", { ...execute, tool_name: "whoo" }, -32602, undefined],
    ["arguments that are a list", { ...execute, arguments: [] }, -32602, undefined],
    ["another version", { ...execute, version: "7" }, -32601, { supported: ["0.4.2", "0.4.1"] }],
    ["another method", { jsonrpc: "2.0", id: 1, method: "mcp.handshake", params: execute }, -32601, undefined],
  ])("refuse to run with %s", async (_, body, code, data) => {
    const { status, message } = await post("tools/execute", body);
    expect(status).toBe(200);
    expect(message.error?.code).toBe(code);
    if (data) expect(message.error?.data).toEqual(data);
  });
  it("list resources", async () => {
    const { message } = await post("resources/list", { context: good });
    expect(message.result?.resources).toMatchObject([{ uri: "desk://note" }]);
    expect((await post("resources/list", {})).message.error?.code).toBe(-32001);
  });
  it("refuse the list of a server that has no resources, as its declaration says", async () => {
    await using bare = createServer({ name: "bare", version: "1", contract: { schema: { type: "object" } } });
    bare.tool("t", {}, () => "");
    const { url: at } = await bare.listen({ port: 0 });
    const answer = await fetch(`${at}/resources/list`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"context":{}}',
    });
    const data = { reason: "undeclared_capability", capability: "resources.list" };
    expect(await answer.json()).toMatchObject({ error: { code: -32601, data } });
  });
  it("give the last context of a session, with the end of its time where the version has one", async () => {
    await post("tools/execute", { ...execute, context: { ...good, session_id: "older" } });
    const get = (more: object) => post("contexts/get", { session_id: "older", ...more });
    const { message } = await get({});
    expect(message.result).toMatchObject({ context: { ...good, session_id: "older" } });
    expect(message.result).toHaveProperty("expires_at");
    expect((await get({ version: "0.4.1" })).message.result).not.toHaveProperty("expires_at");
    expect((await get({ session_id: "nobody's" })).message.error).toMatchObject({
      code: -32602,
      data: { reason: "unknown_context" },
    });
  });
  it("are not there on a server without a contract, and no other path is", async () => {
    await using plain = createServer({ name: "plain", version: "1", logSink: () => undefined });
    const { url: to } = await plain.listen({ port: 0 });
    expect((await post("handshake", "{}", {}, to)).status).toBe(404);
    expect((await post("tools/list", "{}")).status).toBe(404);
    expect((await post("handshake/", "{}")).status).toBe(404);
  });
});

describe("whatever a stranger sends them", () => {
  it("has an answer that is JSON-RPC, and is never our fault", async () => {
    const lines: LogEntry[] = [];
    await using embedded = desk({ logSink: (line) => lines.push(line) });
    const endpoint = fc.constantFrom("handshake", "tools/execute", "resources/list", "contexts/get");
    const part = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(good, "who", "mcp.handshake", "tools/execute", "0.4.1", "s1"),
    );
    const params = fc.dictionary(
      fc.constantFrom(
        "context",
        "tool_name",
        "arguments",
        "session_id",
        "cursor",
        "version",
        "protocol_version",
        "__proto__",
      ),
      part,
    );
    const envelope = fc.record(
      { jsonrpc: fc.constantFrom("2.0", "3.0", 2), id: part, method: part, params },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(endpoint, fc.oneof(part, params, envelope), async (path, body) => {
        const headers = { host: "127.0.0.1", "content-type": "application/json" };
        const url = `http://127.0.0.1/mcp/${path}`;
        const answer = await embedded.fetch(new Request(url, { method: "POST", headers, body: JSON.stringify(body) }));
        const message = (await answer.json()) as Message;
        expect([200, 400]).toContain(answer.status);
        expect("result" in message || typeof message.error?.code === "number").toBe(true);
        expect(message.error?.code).not.toBe(-32603);
      }),
      { numRuns: 300 },
    );
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("a server behind another framework", () => {
  it("has them under whatever path its endpoint is mounted at", async () => {
    await using embedded = desk();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "mcp.handshake" });
    const headers = { host: "127.0.0.1", "content-type": "application/json" };
    const request = new Request("http://127.0.0.1/api/desk/handshake", { method: "POST", headers, body });
    expect(await (await embedded.fetch(request)).json()).toMatchObject({ result: { server_id: "desk" } });
  });
});

describe("who may use them", () => {
  it("is whoever has the token and the scopes that the protocol's endpoint asks for", async () => {
    const signer = await createSigner("k1");
    await using guarded = desk({ auth: jwt(accepts(signer)) });
    guarded.tool("pay", { scopes: ["pay"] }, (_, ctx) => String(ctx.caller?.subject));
    const { url: to } = await guarded.listen({ port: 0 });
    const body = { context: good, tool_name: "pay" };
    expect((await post("handshake", "{}", {}, to)).status).toBe(401);
    const as = async (subject: string, scope: string) => bearer(await sign(signer, subject, scope));
    const narrow = await post("tools/execute", body, await as("alice", "other"), to);
    expect(narrow.status).toBe(403);
    expect(narrow.headers["www-authenticate"]).toContain('scope="pay"');
    expect((await post("tools/execute", body, await as("alice", "pay"), to)).message.result).toMatchObject({
      content: [{ text: "alice" }],
    });
    const other = await post("tools/execute", body, await as("bob", "pay"), to);
    expect(other.message.error).toMatchObject({ code: -32002, data: { field: "user_id" } });
  });
});

describe("the plain secret", () => {
  it("may be short, with a warning that does not show it, and stands behind the keys of the contract", async () => {
    const lines: LogEntry[] = [];
    vi.stubEnv("MCP_SERVER_SECRET", "short");
    try {
      await using weak = desk({ logSink: (line) => lines.push(line) });
      const { url: to } = await weak.listen({ port: 0 });
      const { message } = await post("handshake", { jsonrpc: "2.0", id: 1, method: "mcp.handshake" }, {}, to);
      expect(message.result?.signature).toMatch(/^sha256-hmac:[0-9a-f]{64}$/);
      const warned = lines.filter(({ level }) => level === "warning");
      expect(JSON.stringify(warned)).toContain("MCP_SERVER_SECRET has less than 32 bytes");
      expect(JSON.stringify(lines)).not.toContain("short");
    } finally {
      vi.unstubAllEnvs();
    }
    await using unsigned = desk({ contract: { schema: CONTEXT, keys: [newContractKey({ kid: "k", alg: "EdDSA" })] } });
    const { url: to } = await unsigned.listen({ port: 0 });
    const { message } = await post("handshake", { jsonrpc: "2.0", id: 1, method: "mcp.handshake" }, {}, to);
    // there is no secret that an older client could have
    expect(message.result).not.toHaveProperty("signature");
  });
});
