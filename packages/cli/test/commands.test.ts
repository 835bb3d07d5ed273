import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKeyRing, readContractKeys } from "@tenon/core/contract";
import { createLocalJWKSet, decodeJwt, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authServer, main, type Outcome, tenon } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const fresh = (): string => mkdtempSync(join(folder, "cwd-"));
const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const audience = "http://127.0.0.1:8000/mcp";

describe("tenon keys", () => {
  it("makes a pair that only its owner can read, in a directory that git leaves alone", async () => {
    const cwd = fresh();
    const { code, stdout, stderr } = await tenon(["keys", "new"], { cwd });
    expect([code, stderr]).toEqual([0, ""]);
    const files = ["signing-key.jwks.json", "signing-key.pem", "signing-key.public.pem"];
    expect(readdirSync(join(cwd, ".tenon")).sort()).toEqual([".gitignore", ...files]);
    expect([mode(join(cwd, ".tenon")), mode(join(cwd, ".tenon/signing-key.pem"))]).toEqual(["700", "600"]);
    expect(readFileSync(join(cwd, ".tenon/.gitignore"), "utf8")).toBe("*\n");
    const secret = readFileSync(join(cwd, ".tenon/signing-key.pem"), "utf8").split("\n")[1] ?? "";
    expect(secret.length).toBeGreaterThan(40);
    expect(stdout).not.toContain(secret);
    expect(stdout).not.toContain("PRIVATE");
  });
  it("takes the place it is given, and TENON_DATA_DIR where it is given none", async () => {
    const cwd = fresh();
    const made = await tenon(["keys", "new", "--out", "keys/ci.pem", "--alg", "RS256", "--json"], { cwd });
    expect(JSON.parse(made.stdout)).toMatchObject({ algorithm: "RS256", files: { privateKey: "keys/ci.pem" } });
    expect(mode(join(cwd, "keys/ci.pem"))).toBe("600");
    await tenon(["keys", "new", "--alg", "EdDSA"], { cwd, env: { TENON_DATA_DIR: join(cwd, "data") } });
    expect(mode(join(cwd, "data/signing-key.pem"))).toBe("600");
    const pem = await tenon(["keys", "show", "--pem", "--key", "keys/ci.pem"], { cwd });
    expect(pem.stdout).toMatch(/^-----BEGIN PUBLIC KEY-----\n/);
  });
  it("never overwrites, and shows only the public half", async () => {
    const cwd = fresh();
    await tenon(["keys", "new"], { cwd });
    const shown = await tenon(["keys", "show"], { cwd });
    const again = await tenon(["keys", "new"], { cwd });
    expect([again.code, again.stdout]).toEqual([1, ""]);
    expect(again.stderr).toContain("exists and is not overwritten");
    expect((await tenon(["keys", "show"], { cwd })).stdout).toBe(shown.stdout);
    expect(Object.keys(JSON.parse(shown.stdout).keys[0]).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
  });
});

describe("tenon keys new --contract", () => {
  const make = (...args: string[]) => tenon(["keys", "new", "--contract", ...args], { cwd: folder });
  it("prints a line that a server signs with and one that its clients check with, and writes no file", async () => {
    const cwd = fresh();
    const { code, stdout } = await tenon(["keys", "new", "--contract", "--alg", "EdDSA", "--kid", "a"], { cwd });
    expect(code).toBe(0);
    expect(readdirSync(cwd)).toEqual([]);
    const server = /^ {2}server {3}TENON_CONTRACT_KEYS=(a:EdDSA:[\w-]{43})$/m.exec(stdout)?.[1] ?? "";
    const client = /^ {2}clients {2}(a:EdDSA\.public:[\w-]{43}) /m.exec(stdout)?.[1] ?? "";
    const said = { version: "0.4.2", server_id: "s", capabilities: [], context_schema: {} };
    const signed = createKeyRing(readContractKeys(server)).sign(said);
    expect(createKeyRing(readContractKeys(client)).faultOf(signed)).toBeUndefined();
  });
  it("prints JSON for programs, and takes the time it is in use from", async () => {
    const { stdout } = await make("--json", "--active-from", "2026-12-01T01:00:00+01:00");
    const { kid, alg, activeFrom, server, client } = JSON.parse(stdout);
    expect({ kid, alg, activeFrom }).toEqual({
      kid: "2026-12-01",
      alg: "HS256",
      activeFrom: "2026-12-01T00:00:00.000Z",
    });
    expect(server).toMatch(/^2026-12-01:HS256:[\w-]{43}@2026-12-01T00:00:00\.000Z$/);
    expect(client).toBe(server);
  });
  it.each([
    [["--alg", "RS256"], 2, "a contract is signed with HS256 or EdDSA"],
    [["--out", "x.pem"], 2, "--out is for tokens"],
    [["--active-from", "tomorrow"], 2, "ISO 8601"],
    [["--kid", "a b"], 1, "1 to 64 letters"],
  ])("refuses %j", async (args, code, words) => {
    const outcome = await make(...args);
    expect([outcome.code, outcome.stdout]).toEqual([code, ""]);
    expect(outcome.stderr).toContain(words);
  });
  it("keeps its flags apart from those of keys for tokens", async () => {
    for (const args of [
      ["--kid", "a"],
      ["--active-from", "2026-12-01"],
      ["--alg", "HS256"],
    ]) {
      const { code, stderr } = await tenon(["keys", "new", ...args], { cwd: fresh() });
      expect(code).toBe(2);
      expect(stderr).toContain("--contract");
    }
  });
});

describe("tenon token", () => {
  const cwd = fresh();
  let jwks: ReturnType<typeof createLocalJWKSet>;
  beforeAll(async () => {
    await tenon(["keys", "new"], { cwd });
    jwks = createLocalJWKSet(JSON.parse((await tenon(["keys", "show"], { cwd })).stdout));
  });
  const token = (...args: string[]): Promise<Outcome> =>
    tenon(["token", "--subject", "alice", "--audience", audience, ...args], { cwd });

  it("prints a token that the public key set verifies, and nothing else", async () => {
    const { code, stdout, stderr } = await token("--scope", "orders:read orders:refund", "--scope", "stock:read");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const { payload } = await jwtVerify(stdout.trim(), jwks, { audience, issuer: "http://127.0.0.1:4749" });
    expect(payload).toMatchObject({ sub: "alice", scope: "orders:read orders:refund stock:read" });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(3600);
  });
  it("takes issuer, client, lifetime and claims", async () => {
    const args = ["--issuer", "https://id.example", "--client-id", "desk", "--expires", "60"];
    const { stdout } = await token(...args, "--claim", "tenant=acme", "--claim", 'roles=["a"]', "--claim", "level=3");
    const claims = decodeJwt(stdout.trim());
    expect(claims).toMatchObject({
      iss: "https://id.example",
      client_id: "desk",
      tenant: "acme",
      roles: ["a"],
      level: 3,
    });
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(60);
  });
  it("can be read by a program", async () => {
    const { stdout } = await token("--json", "--scope", "a");
    expect(JSON.parse(stdout)).toMatchObject({
      subject: "alice",
      audience: [audience],
      scope: "a",
      expiresInSeconds: 3600,
    });
  });
  it.each<[string, string[], string]>([
    ["no audience", ["--subject", "a"], "--audience <url>"],
    ["no subject", ["--audience", audience], "--subject <user>"],
    ["a typing error", ["--subject", "a", "--audiance", audience], "did you mean --audience?"],
    ["a lifetime beyond a day", ["--subject", "a", "--audience", audience, "--expires", "86401"], "from 1 to 86400"],
    ["a claim without a value", ["--subject", "a", "--audience", audience, "--claim", "x"], "name=value"],
  ])("refuses %s: exit code 2", async (_, args, message) => {
    const { code, stdout, stderr } = await tenon(["token", ...args], { cwd });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
  });
  it("says what to do when there is no key, or others may read it: exit code 1", async () => {
    const args = ["token", "--subject", "a", "--audience", audience];
    const missing = await tenon(args, { cwd: fresh() });
    expect([missing.code, missing.stdout]).toEqual([1, ""]);
    expect(missing.stderr).toBe(
      `tenon token: no token was signed
  why: There is no signing key at .tenon/signing-key.pem
  do:  make one with: tenon keys new
`,
    );
    const open = fresh();
    await tenon(["keys", "new"], { cwd: open });
    chmodSync(join(open, ".tenon/signing-key.pem"), 0o644);
    const exposed = await tenon(args, { cwd: open });
    expect([exposed.code, exposed.stdout]).toEqual([1, ""]);
    expect(exposed.stderr).toContain("chmod 600 .tenon/signing-key.pem");
  });
  it("shows the causes when asked to", async () => {
    const args = ["token", "--subject", "a", "--audience", audience, "--key", "none.pem"];
    expect((await tenon(args, { cwd })).stderr).not.toContain("cause:");
    expect((await tenon([...args, "--verbose"], { cwd })).stderr).toMatch(
      /cause: ConfigError: .+\n {2}cause: Error: ENOENT/,
    );
  });
});

describe("the command line", () => {
  it("is a program that can be started by its name", () => {
    expect(statSync(main).mode & 0o111).toBe(0o111);
    expect(readFileSync(main, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
    expect(spawnSync(main, ["--version"], { encoding: "utf8" }).stdout).toBe(`${version}\n`);
  });
  it("shows its help without loading what its commands need", () => {
    const hooks = `import { writeSync } from "node:fs";
      export async function load(url, context, next) { writeSync(2, "loaded " + url + "\\n"); return next(url, context); }`;
    const register = `import { register } from "node:module"; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});`;
    const args = ["--import", `data:text/javascript,${encodeURIComponent(register)}`, main];
    const loadedBy = (...rest: string[]): string[] => {
      const { status, stderr } = spawnSync(process.execPath, [...args, ...rest], { encoding: "utf8", cwd: folder });
      expect(status, stderr).toBe(0);
      return stderr.split("\n").filter((line) => line.startsWith("loaded file:"));
    };
    const help = loadedBy("--help");
    expect(help.some((line) => line.includes("commander"))).toBe(true);
    expect(
      help.filter((line) => /oidc-provider|\/jose\/|\/koa\/|packages\/(server|client|store)\//.test(line)),
    ).toEqual([]);
    expect(help.length).toBeLessThan(20);
    // the list is not empty for want of looking
    expect(loadedBy("keys", "new").some((line) => line.includes("/jose/"))).toBe(true);
  });
  it("understands every command that its documentation shows", async () => {
    const pages = ["../../../docs/development-identity.md", "../README.md"].map((page) =>
      readFileSync(new URL(page, import.meta.url), "utf8"),
    );
    const shown = pages.flatMap((page) =>
      [...page.matchAll(/^(?:npx )?tenon (.+?)(?: > .+)?$/gm)].map(([, line = ""]) => line),
    );
    const commands = shown.map((line) =>
      [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? ""),
    );
    expect(commands.length).toBeGreaterThan(6);
    const where = { cwd: fresh() };
    for (const args of commands) {
      if (args[0] === "auth-server") {
        const server = await authServer(args.slice(1), where);
        expect(await server.stop()).toBe(0);
        continue;
      }
      if (args[1] === "new") where.cwd = fresh();
      const { code, stdout, stderr } = await tenon(args, where);
      expect([code, stderr], args.join(" ")).toEqual([0, ""]);
      expect(stdout).not.toBe("");
    }
  });
});
