// A server from a file, as a process of its own.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient, renderText } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { loadConfig } from "@tenon/client/config";
import { createSigningKey, publicJwks, signToken } from "@tenon/server/development";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { connect } from "../../server/test/servers.ts";
import { type Running, running, tenon } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-serve-"));
const started: Running[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder with these files. */
function place(files: Record<string, string>): string {
  const cwd = mkdtempSync(join(folder, "cwd-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(cwd, name, ".."), { recursive: true });
    writeFileSync(join(cwd, name), text);
  }
  return cwd;
}

async function serve(cwd: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const server = await running(["serve", "--config", "tenon.yaml", "--port", "0", ...args], { cwd, env });
  started.push(server);
  return { ...server, url: String(server.ready.url) };
}

const CLOCK = {
  "tools/clock.ts": `
    export const now = async ({ zone }: { zone: string }): Promise<string> => \`noon in \${zone}\`;
    export const limit = 5;
    export async function ask(_: unknown, ctx: { elicit(message: string, shape: string[]): Promise<{ data?: string }> }) {
      return (await ctx.elicit("Really?", ["yes", "no"])).data;
    }`,
  "functions.js": "export const sum = ({ a, b }) => ({ sum: a + b });\nexport default () => 'by default';",
  "tenon.yaml": `
server:
  name: clock
  version: "1.0"
tools:
  now:
    description: The time in a zone.
    input_schema: { type: object, properties: { zone: { type: string } }, required: [zone] }
    function: tools.clock.now
  sum:
    input_schema: { type: object, properties: { a: { type: number }, b: { type: number } } }
    output_schema: { type: object, properties: { sum: { type: number } }, required: [sum] }
    annotations: { readOnlyHint: true }
    function: ./functions.js#sum
  plain: { function: ./functions.js }
  ask: { function: tools.clock.ask }
`,
};

describe("a server from a file", () => {
  it.each(["modern", "legacy"] as const)("offers the functions it names as tools (%s)", async (era) => {
    const { url, output, stop } = await serve(place(CLOCK));
    expect(output.stderr).toMatch(/^tenon serve: clock 1\.0 listens on http:\/\/127\.0\.0\.1:\d+\/mcp \(4 tools\)\n$/);
    const client = await connect(url, era);
    const call = async (name: string, args: Record<string, unknown> = {}) =>
      (await client.callTool({ name, arguments: args })) as {
        content: { text: string }[];
        structuredContent?: unknown;
      };
    expect((await client.listTools()).tools.map(({ name }) => name).sort()).toEqual(["ask", "now", "plain", "sum"]);
    expect((await call("now", { zone: "UTC" })).content[0]?.text).toBe("noon in UTC");
    expect((await call("sum", { a: 2, b: 3 })).structuredContent).toEqual({ sum: 5 });
    expect((await call("plain")).content[0]?.text).toBe("by default");
    expect((await call("now", { zone: 7 })).content[0]?.text).toContain("zone: must be a string");
    await client.close();
    expect(await stop("SIGINT")).toBe(0);
  });
  it("lets flags win over the environment, and the environment over the file", async () => {
    const cwd = place({
      ...CLOCK,
      "tenon.yaml": CLOCK["tenon.yaml"].replace(
        "  name: clock",
        `  name: \${NAME:-clock}\n  host: 256.0.0.1\n  path: \${AT}`,
      ),
    });
    const { ready } = await serve(cwd, ["--host", "127.0.0.1", "--data", "kept"], {
      TENON_HOST: "256.0.0.2",
      AT: "/here",
      NAME: "",
    });
    expect(ready).toMatchObject({ name: "clock", url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/here$/) });
    expect(readdirSync(join(cwd, "kept"))).toContain("tenon.sqlite");
    const { stderr } = await tenon(["serve", "--config", "tenon.yaml", "--port", "0"], {
      cwd,
      env: { TENON_HOST: "256.0.0.2", AT: "/" },
    });
    expect(stderr).toContain("256.0.0.2");
  });
  it("may be part of a file that clients read, without either minding the other", async () => {
    const cwd = place({
      ...CLOCK,
      "tenon.yaml": `mcpServers:\n  other: { url: "http://127.0.0.1:9/mcp" }\n${CLOCK["tenon.yaml"]}`,
    });
    expect((await loadConfig(join(cwd, "tenon.yaml"))).warnings).toEqual([]);
    const { code, stdout } = await tenon(["serve", "--config", "tenon.yaml", "--check"], { cwd });
    expect([code, stdout]).toEqual([0, "tenon.yaml: clock 1.0 can be served: now, sum, plain, ask\n"]);
  });
});

describe("a file that is wrong", () => {
  const bad = `server:
  prt: 8000
  version: 1.0
  ssl: true
  ssl_certfile: nope.pem
  workers: \${MANY}
  cors_origins: ["*", "https://desk.example/x"]
mcp:
  authentication: { type: basic, issuer: "\${LOGIN_ISSUER}", audience: x, jwks_url: "https://login.example/jwks" }
tools:
  one:
    input_schema:
      type: object
      properties: { at: { type: strin } }
    function: ./functions.js#summ
  two: { function: tools.clok.now }
  three: { function: tools.clock.limit }
  four: { function: now }
  five: { describtion: x, function: ./broken.js }
`;
  it("is told everything about at once, each with its place and what was meant, and nothing listens", async () => {
    const cwd = place({ ...CLOCK, "tenon.yaml": bad, "broken.js": "throw new Error('no database');" });
    const env = { MANY: "secret-word" };
    const { code, stdout, stderr } = await tenon(["serve", "--config", "tenon.yaml"], { cwd, env });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr.split("\n").map((line) => line.trim().replace(/^why: /, ""))).toEqual([
      "tenon serve: tenon.yaml has 15 problems; nothing is served",
      "tenon.yaml:1:1: server.ssl_keyfile: is missing, and ssl is true; give the path of a PEM file",
      'tenon.yaml:2:3: server.prt: unknown property; did you mean "port"?',
      "tenon.yaml:3:3: server.version: must be a string, got 1; put it in quotes",
      "tenon.yaml:6:3: server.workers: must be a whole number from 1, got a string",
      'tenon.yaml:7:18: server.cors_origins[0]: is "*", which would let every page that somebody visits call the tools; name the origins, such as https://desk.example',
      'tenon.yaml:7:23: server.cors_origins[1]: is "https://desk.example/x", which is no origin; write scheme, host and port only, such as https://desk.example',
      'tenon.yaml:9:21: mcp.authentication.type: must be one of "jwt", got "basic"; jwt is the only type there is',
      `tenon.yaml:9:34: mcp.authentication.issuer: uses \${LOGIN_ISSUER}, but the environment has no LOGIN_ISSUER; set it, or write \${LOGIN_ISSUER:-default}`,
      'tenon.yaml:14:27: tools.one.input_schema.properties.at.type: is no schema: "strin" is no type; did you mean "string"?',
      'tenon.yaml:15:5: tools.one.function: names "summ", which functions.js does not export (did you mean "sum"?); it exports: default, sum',
      "tenon.yaml:16:10: tools.two.function: names a module that is not there; looked for tools/clok.ts, tools/clok.js, tools/clok.mjs; did you mean tools/clock.ts?",
      'tenon.yaml:17:12: tools.three.function: names "limit" of tools/clock.ts, which is a value of type number and no function',
      'tenon.yaml:18:11: tools.four.function: is "now"; expected ./functions.js#name, or module.name for an export of module.ts, .js or .mjs',
      'tenon.yaml:19:11: tools.five.describtion: unknown property; did you mean "description"?',
      "tenon.yaml:19:27: tools.five.function: names broken.js, which cannot be loaded: no database",
      "do:  correct them; tenon serve --config tenon.yaml --check looks without serving",
      "",
    ]);
    expect(readdirSync(cwd)).not.toContain(".tenon");
    const checked = await tenon(["serve", "--config", "tenon.yaml", "--check", "--json"], { cwd, env });
    expect([checked.code, JSON.parse(checked.stdout)]).toMatchObject([
      1,
      {
        ok: false,
        problems: expect.arrayContaining([expect.objectContaining({ path: "server.prt", line: 2, column: 3 })]),
      },
    ]);
  });
  it("may be JSON, and may be no file at all", async () => {
    const cwd = place({
      ...CLOCK,
      "tenon.json": '{\n  // a comment\n  "tools": { "now": { "function": "tools.clock.noww" } },\n}',
    });
    const { stderr } = await tenon(["serve", "--config", "tenon.json"], { cwd });
    expect(stderr).toContain(
      'tenon.json:3:23: tools.now.function: names "noww", which tools/clock.ts does not export (did you mean "now"?)',
    );
    const missing = await tenon(["serve", "--config", "none.yaml"], { cwd });
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("there is no none.yaml")]);
  });
  it("says where it is no YAML, what a context must be, and which variable holds no keys", async () => {
    const cwd = place({
      ...CLOCK,
      "tab.yaml": "server:\n  name: x\n\tport: 3\n",
      "ok.yaml": "mcp: { context_schema: { type: object } }\ntools: { sum: { function: ./functions.js#sum } }\n",
      "list.yaml": `mcp: { context_schema: { type: array } }\ntools: { sum: { function: ./functions.js#sum } }\n`,
    });
    const checked = (file: string) => tenon(["serve", "--config", file, "--check"], { cwd });
    const [tab, list] = await Promise.all([checked("tab.yaml"), checked("list.yaml")]);
    expect([tab.code, tab.stderr]).toEqual([
      1,
      expect.stringMatching(/nothing is served\n.*tab.yaml:3: is no YAML.*\n.*correct it/),
    ]);
    const keys = { TENON_CONTRACT_KEYS: "a:HS256:abc" };
    const short = await tenon(["serve", "--config", "ok.yaml", "--check"], { cwd, env: keys });
    expect(short.stderr).toContain(
      "the variable TENON_CONTRACT_KEYS holds cannot be used: Contract keys: the secret of",
    );
    expect(list.stderr).toContain('list.yaml:1:26: mcp.context_schema.type: is "array"; a context is an object');
  });
  it("names a port that is in use, at its place", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const cwd = place({
      ...CLOCK,
      "tenon.yaml": CLOCK["tenon.yaml"].replace("  name: clock", `  name: clock\n  port: ${port}`),
    });
    const { code, stderr } = await tenon(["serve", "--config", "tenon.yaml"], { cwd });
    other.close();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`tenon.yaml:4:3: server.port: Port ${port} on 127.0.0.1 is in use`),
    ]);
  });
});

describe("who may come in", () => {
  const pem = (name: string): string =>
    fileURLToPath(new URL(`../../server/test/fixtures/tls/${name}.pem`, import.meta.url));
  it("is spoken to with TLS, from the pages of the named origins only, and with a token of the named issuer", async () => {
    const key = await createSigningKey();
    const keys = createServer((_, response) =>
      response.setHeader("content-type", "application/json").end(JSON.stringify(publicJwks(key))),
    );
    keys.listen(0, "127.0.0.1");
    await new Promise((resolve) => keys.once("listening", resolve));
    const jwks = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/jwks`;
    const rules = `
  ssl: true
  ssl_certfile: ${pem("first.cert")}
  ssl_keyfile: ${pem("first.key")}
  cors_origins: ["https://desk.example"]
mcp:
  authentication: { type: jwt, issuer: the-company, audience: clock, jwks_url: "${jwks}" }`;
    const cwd = place({
      ...CLOCK,
      "tenon.yaml": CLOCK["tenon.yaml"].replace('  version: "1.0"', `  version: "1.0"${rules}`),
    });
    const { url } = await serve(cwd, ["--workers", "2"]);
    expect(url).toMatch(/^https:/);
    const ca = readFileSync(pem("first.cert"), "utf8");
    const token = (issuer: string) => signToken({ key, issuer, audience: "clock", subject: "alice", scopes: [] });
    const ask = async (issuer: string, headers: Record<string, string> = {}) => {
      await using client = createClient({
        servers: { clock: { url, ca, auth: bearer(await token(issuer)), headers } },
      });
      return await client.callTool("clock", "now", { zone: "UTC" }).then(
        ({ content }) => renderText(content),
        (error) => error.code,
      );
    };
    expect(await ask("the-company")).toBe("noon in UTC");
    expect(await ask("somebody-else")).toBe("invalid_token");
    expect(await ask("the-company", { origin: "https://desk.example" })).toBe("noon in UTC");
    expect(await ask("the-company", { origin: "https://desk.example:8443" })).toBe("forbidden");
    expect(await ask("the-company", { origin: "http://desk.example" })).toBe("forbidden");
    keys.close();
  });
});
