import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import { parseDocumentText } from "@tenon/core/internal/document";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import { describe, expect, it } from "vitest";
import { serverSchema } from "../server-schema.ts";
import { hostsOf } from "./hosts.ts";
import { type Overrides, readServeFile } from "./settings.ts";

const FILE = "/srv/clock/tenon.yaml";
const read = async (text: string, env: Record<string, string> = {}, overrides: Overrides = {}) => {
  const { settings, problems } = await readServeFile(text, FILE, env, overrides);
  return { settings, problems: problems.all().map(({ path, message }) => `${path}: ${message}`) };
};
const TOOLS = "\ntools: { now: { function: tools.now } }";
const first = fileURLToPath(new URL("../../../server/test/fixtures/tls/first.cert.pem", import.meta.url));

describe("a file for tenon serve", () => {
  it("says nothing but its tools where the rest is as usual", async () => {
    expect(await read(TOOLS)).toMatchObject({
      problems: [],
      settings: { name: "clock", version: "0.0.0", host: "127.0.0.1", port: 8000, endpoint: "/mcp", workers: 1 },
    });
  });
  it("takes numbers, yes and no, and lists from variables, which are texts", async () => {
    const server = `server: { port: '\${A}', ssl: '\${B}', workers: '\${C}', cors_origins: '\${D}' }`;
    const env = { A: "8443", B: "false", C: "3", D: "https://a.example, https://b.example" };
    const { settings, problems } = await read(`${server}${TOOLS}`, env);
    expect(problems).toEqual([]);
    expect(settings).toMatchObject({ port: 8443, tls: undefined, workers: 3 });
    expect(settings.corsOrigins).toEqual(["https://a.example", "https://b.example"]);
    expect((await read(`${server}${TOOLS}`, env, { port: 1, workers: 2 })).settings).toMatchObject({
      port: 1,
      workers: 2,
    });
    expect((await read(`${server}${TOOLS}`, { ...env, A: "99999" })).problems).toEqual([
      "server.port: must be a port from 0 to 65535",
    ]);
  });
  it("never has what may be secret shown", async () => {
    const wrong = `server: { ssl_keyfile_password: 12345, log_level: '\${LEVEL}', port: '\${PORT}' }`;
    const { problems } = await read(`${wrong}${TOOLS}`, { LEVEL: "hunter2", PORT: "hunter3" });
    expect(problems).toHaveLength(3);
    expect(problems.join()).not.toMatch(/12345|hunter/);
  });
  it("is refused with its place where a part of it is itself", async () => {
    await expect(read("tools:\n  now: &a\n    input_schema: { properties: { self: *a } }\n")).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringMatching(/tenon\.yaml:3: .*self is \*a, which it is itself a part of/),
    });
  });
  it("is for an editor what it is for the command: the published schema takes it with its variables", () => {
    const example = fileURLToPath(new URL("../../../../examples/time-server/tenon.yaml", import.meta.url));
    const compiled = schemaCheck(serverSchema());
    expect(compiled.fault).toBeUndefined();
    const verdict = (text: string) =>
      !compiled.fault && compiled.check(parseDocumentText(text, FILE, undefined, "an object").value).ok;
    expect(verdict(readFileSync(example, "utf8"))).toBe(true);
    expect(
      verdict(
        `server: { port: '\${PORT:-8000}', ssl: '\${TLS:-false}', workers: '\${N:-2}', log_level: '\${L:-info}' }\ntools: { a: { function: b.c } }`,
      ),
    ).toBe(true);
    expect(verdict("server: { port: eighty }\ntools: { a: { function: b.c } }")).toBe(false);
  });
});

describe("a file that clients read, too,", () => {
  it("may hold everything that is theirs", () => {
    const client = fileURLToPath(import.meta.resolve("@tenon/client/schema/tenon.schema.json"));
    const theirs = Object.keys(JSON.parse(readFileSync(client, "utf8")).properties);
    expect(theirs).toContain("mcpServers");
    const { properties } = serverSchema();
    expect(theirs.filter((key) => !Object.hasOwn(Object(properties), key))).toEqual([]);
  });
});

describe("the host names a served file answers to", () => {
  const hosts = async (server: string, mcp = "{}") =>
    hostsOf((await read(`server: ${server}\nmcp: ${mcp}${TOOLS}`)).settings);
  it("are those of this machine, of its certificate and of its tokens, where the file names none", async () => {
    expect(await hosts("{}")).toEqual(["localhost", "127.0.0.1", "[::1]"]);
    expect(await hosts("{ host: 10.1.2.3 }")).toEqual(["localhost", "127.0.0.1", "[::1]", "10.1.2.3"]);
    const auth =
      "{ authentication: { type: jwt, issuer: a, audience: 'https://clock.example/mcp', jwks_url: 'https://a.example' } }";
    const all = await hosts(`{ host: 0.0.0.0, ssl_certfile: "${first}", ssl_keyfile: x }`, auth);
    expect(all).toEqual(
      expect.arrayContaining(["localhost", hostname().toLowerCase(), "tools.example", "clock.example"]),
    );
    expect(all).not.toContain("0.0.0.0");
  });
  it("are exactly those that the file names", async () => {
    expect(await hosts("{ host: 0.0.0.0, allowed_hosts: [clock.example] }")).toEqual(["clock.example"]);
  });
});
