import { createKeyRing } from "@tenon/core/contract";
import { stubHttp } from "../../client/test/stub/http.ts";
import { startSse } from "../../client/test/stub/sse.ts";
import { FIRST } from "../../server/test/certificates.ts";
import {
  always,
  contract,
  declared,
  EXPIRED,
  type Fixture,
  guarded,
  headless,
  http,
  https,
  KEY,
  OTHER,
  ring,
  script,
  stdio,
  tcp,
  tool,
  tools,
  unexecutable,
} from "./doctor-fixtures.ts";

/** What is wrong, the code that says so, and words that stand in evidence or fix. */
export type Case = readonly [
  what: string,
  code: string,
  words: string | RegExp,
  make: () => Fixture | Promise<Fixture>,
];

export const NETWORK: Case[] = [
  ["nothing listening", "refused", "ECONNREFUSED", () => ({ config: { url: "http://127.0.0.1:1/mcp" } })],
  [
    "a name without an address",
    "dns_failed",
    "nothing.invalid",
    () => ({ config: { url: "http://nothing.invalid/mcp" } }),
  ],
  ["a certificate that nobody vouches for", "tls_untrusted", "tenon test first", () => https(FIRST, "127.0.0.1")],
  ["a certificate whose time is over", "tls_expired", "2021", () => https(EXPIRED, "127.0.0.1", EXPIRED.cert)],
  [
    "a certificate for another host",
    "tls_wrong_host",
    "not for 127.0.0.2",
    () => https(FIRST, "127.0.0.2", FIRST.cert),
  ],
  [
    "https at a port that speaks http",
    "https_on_http_port",
    "http://",
    async () => {
      const stub = await stubHttp();
      return { config: { url: stub.url.replace("http:", "https:") }, close: stub.close };
    },
  ],
  [
    "http at a port that speaks TLS",
    "http_on_tls_port",
    "https://",
    async () => {
      const { config, ...rest } = await https(FIRST, "127.0.0.1");
      return { ...rest, config: { url: "url" in config ? config.url.replace("https:", "http:") : "" } };
    },
  ],
];

export const HTTP: Case[] = [
  [
    "a wrong path",
    "wrong_path",
    /use http:\/\/127\.0\.0\.1:\d+\/mcp/,
    async () => {
      const stub = await stubHttp({ onHttp: (req, res) => req.url !== "/mcp" && Boolean(res.writeHead(404).end()) });
      return { config: { url: stub.url.replace("/mcp", "/mpc") }, close: stub.close };
    },
  ],
  ["a wrong method", "wrong_method", "Allow: GET", () => always(405, { allow: "GET" })],
  ["a refused content type", "content_type_refused", "application/json", () => always(415)],
  [
    "a wrong content type",
    "wrong_content_type",
    "text/plain",
    () =>
      http({
        on: {
          "server/discover": ({ id }, reply) =>
            reply.http(200, { "content-type": "text/plain" }, JSON.stringify({ jsonrpc: "2.0", id, result: {} })),
        },
      }),
  ],
  ["an Accept header that is refused", "not_acceptable", "406", () => always(406)],
  [
    "a web page",
    "html_page",
    "Welcome",
    () => always(200, { "content-type": "text/html" }, "<!doctype html><title>Welcome</title>"),
  ],
  [
    "a redirect to another host",
    "redirect",
    "https://other.example/mcp",
    () => always(308, { location: "https://other.example/mcp?key=1" }),
  ],
  [
    "a redirect to another path",
    "redirect_followed",
    "/mcp/",
    () =>
      http({ onHttp: (req, res) => req.url === "/mcp" && Boolean(res.writeHead(307, { location: "/mcp/" }).end()) }),
  ],
  ["too many requests", "rate_limited", "wait 7 s", () => always(429, { "retry-after": "7" })],
  ["a server that fails", "server_error", "HTTP 500: out of memory", () => always(500, {}, "out of memory")],
  ["silence", "no_answer", "nothing within", () => http({ onHttp: () => true })],
  [
    "an answer without an end",
    "endless_answer",
    "no end",
    () =>
      http({
        onHttp: (_, res) => {
          res.writeHead(200, { "content-type": "text/event-stream" });
          const timer = setInterval(() => res.write(": still here\n\n"), 50);
          res.on("close", () => clearInterval(timer));
          return true;
        },
      }),
  ],
  [
    "a closed connection",
    "closed_without_answer",
    "log",
    () => http({ onHttp: (req) => Boolean(req.socket.destroy()) }),
  ],
  [
    "something that is not HTTP",
    "not_http",
    "port",
    async () => ({
      config: { url: `http://127.0.0.1:${await tcp((socket) => void socket.end("SSH-2.0-OpenSSH_9\r\n"))}/mcp` },
    }),
  ],
];

export const PROTOCOL: Case[] = [
  [
    "JSON with more levels than a stack has",
    "not_jsonrpc",
    "application/json",
    () =>
      always(
        200,
        { "content-type": "application/json" },
        `{"jsonrpc":"2.0","id":1,"result":${"[".repeat(500_000)}${"]".repeat(500_000)}}`,
      ),
  ],
  [
    "an error whose words are no text",
    "handshake_refused",
    "toString",
    () =>
      always(
        200,
        { "content-type": "application/json" },
        '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":{"toString":1}}}',
      ),
  ],
  [
    "JSON that is not JSON-RPC",
    "not_jsonrpc",
    '{"status":"up"}',
    () => always(200, { "content-type": "application/json" }, '{"status":"up"}'),
  ],
  ["an empty answer", "empty_answer", "HTTP 202", () => always(202)],
  [
    "JSON-RPC that is not MCP",
    "not_mcp",
    "-32601",
    () =>
      http({
        on: {
          "server/discover": (_, reply) => reply.error(-32_601, "Method not found"),
          initialize: (_, reply) => reply.error(-32_601, "Method not found"),
        },
      }),
  ],
  [
    "a newer server without a common revision",
    "version_mismatch",
    "2099-01-01",
    () => http({ on: { "server/discover": () => ({ supportedVersions: ["2099-01-01"], capabilities: {} }) } }),
  ],
  [
    "an older server without a common revision",
    "version_mismatch",
    "1999-01-01",
    () => http({ era: "legacy", on: { initialize: () => ({ protocolVersion: "1999-01-01", capabilities: {} }) } }),
  ],
  [
    "answers under other ids",
    "wrong_id",
    '"4711"',
    () =>
      http({
        onHttp: (_, res) => {
          res.writeHead(200, { "content-type": "application/json" });
          return Boolean(res.end('{"jsonrpc":"2.0","id":"4711","result":{}}'));
        },
      }),
  ],
  ["a proxy that takes the headers of MCP away", "headers_lost", /-32020.*older revision/, () => headless()],
  ["the same, for who wants the newer revision", "headers_lost", /-32020/, () => headless({ revision: "2026-07-28" })],
  [
    "a refused handshake",
    "handshake_refused",
    "no licence",
    () =>
      http({
        on: {
          "server/discover": (_, reply) => reply.error(-32_603, "no licence"),
          initialize: (_, reply) => reply.error(-32_603, "no licence"),
        },
      }),
  ],
  [
    "a request whose body does not arrive",
    "handshake_refused",
    "pass its body on",
    () =>
      http({
        on: {
          "server/discover": (_, reply) => reply.error(-32_700, "The request body is not JSON"),
          initialize: (_, reply) => reply.error(-32_700, "The request body is not JSON"),
        },
      }),
  ],
  [
    "the transport of 2024",
    "sse_only",
    "Streamable HTTP",
    async () => {
      const stub = await startSse();
      return { config: { url: stub.url }, close: stub.close };
    },
  ],
  [
    "tools that are announced and not there",
    "drift",
    "tools/list",
    () => http({ on: { "tools/list": (_, reply) => reply.error(-32_601, "Method not found") } }),
  ],
  [
    "prompts that are announced and not there",
    "drift",
    "prompts/list",
    () => http({ capabilities: { tools: {}, prompts: {} } }),
  ],
  [
    "a list of tools that does not come",
    "no_answer",
    "tools/list",
    () => http({ on: { "tools/list": () => undefined } }),
  ],
  [
    "a list of tools that fails",
    "list_failed",
    "no database",
    () => http({ on: { "tools/list": (_, reply) => reply.error(-32_603, "no database") } }),
  ],
];

const soon = Math.floor(Date.now() / 1_000) + 600;
export const AUTH: Case[] = [
  ["a missing token", "auth_required", "https://id.example", () => guarded(401, "Bearer", undefined, true)],
  ["a missing token, from nobody knows whom", "auth_no_metadata", "no resource_metadata", () => guarded(401, "Bearer")],
  [
    "a token that has ended",
    "auth_token_expired",
    "1970-01-01",
    () => guarded(401, 'Bearer error="invalid_token"', { exp: 1 }),
  ],
  [
    "a token for another server",
    "auth_wrong_audience",
    "https://other.example",
    () => guarded(401, 'Bearer error="invalid_token"', { exp: soon, aud: "https://other.example" }, true),
  ],
  [
    "a token that is not taken",
    "auth_token_refused",
    "revoked",
    () => guarded(401, 'Bearer error="invalid_token", error_description="revoked"', { exp: soon }),
  ],
  [
    "a missing scope",
    "auth_scope",
    "orders:refund",
    () => guarded(403, 'Bearer error="insufficient_scope", scope="orders:refund"', { exp: soon }),
  ],
  ["a caller that is refused", "auth_forbidden", "Invalid Host", () => always(403, {}, "Invalid Host")],
];

const DAY_MS = 24 * 3_600_000;
export const CONTRACT: Case[] = [
  [
    "no contract where keys are given",
    "contract_missing",
    "dev.tenon/context",
    () => http({}, { keys: ring, contractExpected: true }),
  ],
  ["a contract without a signature", "contract_unsigned", "orders", () => contract(declared())],
  [
    "a contract signed with a key of another name",
    "contract_unknown_key",
    '"next"',
    () => contract(createKeyRing([{ ...OTHER, kid: "next" }]).sign(declared())),
  ],
  [
    "a contract signed with another key",
    "contract_invalid",
    "compare keys",
    () => contract(createKeyRing([OTHER]).sign(declared())),
  ],
  [
    "a contract that was changed",
    "contract_invalid",
    "HS256",
    () => contract({ ...ring.sign(declared()), capabilities: ["resources.read"] }),
  ],
  [
    "a contract whose time is over",
    "contract_expired",
    "it counted until",
    () => contract(createKeyRing([KEY], Date.now() - 90 * DAY_MS).sign(declared(), Date.now() - 60 * DAY_MS)),
  ],
  [
    "a contract that cannot be read",
    "contract_malformed",
    "capabilities",
    () => contract({ version: "0.4.2", server_id: "x", capabilities: "all" }),
  ],
  ["a contract of another version", "contract_version", "9.0", () => contract({ ...declared(), version: "9.0" }, {})],
  [
    "a contract that promises too much",
    "contract_drift",
    "resources.read",
    () => contract(ring.sign(declared(["tools.execute", "resources.read"]))),
  ],
  [
    "a missing context field",
    "context_missing_field",
    "user_id",
    () => contract(ring.sign(declared()), { keys: ring, context: { tenant: "acme" } }),
  ],
  [
    "a wrong context value",
    "context_invalid",
    "user_id",
    () => contract(ring.sign(declared()), { keys: ring, context: { user_id: 7 } }),
  ],
  [
    "a handshake that is refused for a missing context field",
    "context_missing_field",
    "session_id",
    () =>
      http({
        on: {
          "server/discover": (_, reply) =>
            reply.error(-32_602, "Missing context field: session_id", {
              reason: "missing_context_field",
              field: "session_id",
            }),
        },
      }),
  ],
];

export const TOOLS: Case[] = [
  [
    "pages that never end",
    "paging_loop",
    '"again"',
    () => http({ on: { "tools/list": () => ({ tools: [], nextCursor: "again" }) } }),
  ],
  [
    "a list of more things than a call takes arguments",
    "tool_malformed",
    "and 199997 more",
    () => http({ on: { "tools/list": () => ({ tools: Array.from({ length: 200_000 }, () => 0) }) } }),
  ],
  ["two tools of one name", "tool_duplicate", "twin", () => tools("twin", "twin")],
  ["a tool without a schema", "schema_missing", "bare", () => tools({ name: "bare" }, "good")],
  ["a schema that is no object", "schema_root", '"array"', () => tools(tool({ type: "array" }))],
  [
    "a schema elsewhere",
    "schema_remote_ref",
    "https://x.example",
    () => tools(tool({ type: "object", properties: { a: { $ref: "https://x.example/a.json" } } })),
  ],
  [
    "a schema with an illegal type",
    "schema_invalid",
    "strnig",
    () => tools(tool({ type: "object", properties: { a: { type: "strnig" } } })),
  ],
  ["a tool without a name", "tool_malformed", "#1", () => tools({ name: "", inputSchema: { type: "object" } })],
  ["a name that clients do not take", "tool_name", "weather", () => tools("weather 北京")],
  ["a name that models see changed", "tool_name_mapped", "admin_tools", () => tools("admin.tools")],
];

export const PROCESS: Case[] = [
  [
    "a program that is not there",
    "command_not_found",
    "no-such-program",
    () => ({ config: { command: "no-such-program" } }),
  ],
  [
    "a program that may not run",
    "command_not_executable",
    "server.sh",
    () => ({ config: { command: unexecutable() } }),
  ],
  [
    "a folder that is not there",
    "folder_missing",
    "/nowhere",
    () => ({ config: { command: process.execPath, cwd: "/nowhere" } }),
  ],
  [
    "a program that ends at once",
    "exited",
    "API_KEY is missing",
    () => script('console.error("API_KEY is missing"); process.exit(3)'),
  ],
  [
    "log lines between the messages",
    "stdout_noise",
    "Server listening",
    () => script(stdio('console.log("Server listening")')),
  ],
  [
    "a program that only logs",
    "stdout_noise",
    "Welcome to Node",
    () => script('console.log("Welcome to Node"); setInterval(() => {}, 1000)'),
  ],
  ["a flood on stdout", "stdout_noise", "no answer", () => ({ config: { command: "yes" } })],
  [
    "a program that repeats what it is sent",
    "process_silent",
    "no answer on stdout",
    () => ({ config: { command: "cat" } }),
  ],
  [
    "a program that stays silent",
    "process_silent",
    "waiting for disk",
    () => script('console.error("waiting for disk"); setInterval(() => {}, 1000)'),
  ],
  [
    "a program that starts slowly",
    "slow_start",
    "first answer after",
    () => script(stdio("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2600)")),
  ],
];
