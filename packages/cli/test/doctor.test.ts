import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeContractKeys } from "@tenon/core/contract";
import { createServer } from "@tenon/server";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { stubHttp } from "../../client/test/stub/http.ts";
import { CODES } from "../src/doctor/codes.ts";
import { examine, type Report } from "../src/doctor/doctor.ts";
import { exitCodeOf, reportText } from "../src/doctor/report.ts";
import { AUTH, type Case, CONTRACT, HTTP, NETWORK, PROCESS, PROTOCOL, TOOLS } from "./doctor-cases.ts";
import { closeFixtures, declared, KEY, ring } from "./doctor-fixtures.ts";
import { tenon } from "./tenon.ts";

/** Whatever a server does. */
const LIMIT_MS = 5_000;
const GROUPS = { NETWORK, HTTP, PROTOCOL, AUTH, CONTRACT, TOOLS, PROCESS };
const everything = Object.values(GROUPS).flat();
const results = new Map<Case, { readonly report: Report; readonly ms: number }>();

const folder = mkdtempSync(join(tmpdir(), "tenon-doctor-"));
beforeAll(async () => {
  // most of them wait: side by side they take no longer than the slowest
  await Promise.all(
    everything.map(async (one) => {
      const { config, options, close } = await one[3]();
      const began = performance.now();
      const report = await examine([{ name: "patient", configured: false, config }], options);
      results.set(one, { report, ms: performance.now() - began });
      await close?.();
    }),
  );
});
afterAll(() => {
  closeFixtures();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(Object.entries(GROUPS))("what is wrong with a server: %s", (_, cases) => {
  it.each(cases)("%s is %s", (...one) => {
    const [, code, words] = one;
    const { report, ms } = results.get(everything.find(([what]) => what === one[0]) as Case) ?? {};
    const [target] = report?.targets ?? [];
    // a busy machine makes servers slow, which is no fault of this one
    const found = target?.findings.filter((finding) => finding.code === code || !finding.code.startsWith("slow_"));
    expect(
      found?.map((finding) => finding.code),
      JSON.stringify(target),
    ).toEqual([code]);
    expect(`${found?.[0]?.evidence}\n${found?.[0]?.fix}`).toMatch(words);
    expect(target?.ok).toBe(found?.[0]?.severity !== "error");
    expect(ms).toBeLessThan(LIMIT_MS);
  });
});

/** A whole report, as programs read it. */
async function doctor(args: readonly string[], env: Record<string, string> = {}) {
  const began = performance.now();
  const { code, stdout, stderr } = await tenon(["doctor", "--json", ...args], { cwd: folder, env });
  const report = stdout === "" ? undefined : (JSON.parse(stdout) as Report);
  const codes = report?.targets.map(({ findings }) => findings.map((finding) => finding.code));
  return { code, stdout, stderr, report, codes, ms: performance.now() - began };
}

/** What the system says of the process whose number is in a file. */
const stateOf = (file: string): string =>
  spawnSync("ps", ["-o", "stat=", "-p", readFileSync(file, "utf8")], { encoding: "utf8" }).stdout;
/** Not there, or only until whoever inherited it notices that it ended. */
const GONE = /^(Z.*)?$/s;

describe("a healthy server", () => {
  it("of ours, in both revisions and with a contract, has nothing to be flagged", async () => {
    const schema = { type: "object", properties: { user_id: { type: "string" } }, required: ["user_id"] } as const;
    const plain = createServer({ name: "plain", version: "1.0.0" });
    const signed = createServer({ name: "orders", version: "1.0.0", contract: { schema, keys: [KEY] } });
    for (const server of [plain, signed])
      server.tool(server === plain ? "query" : "query_order", { description: "Looks up an order" }, () => "none");
    signed.resource("orders://policy", {}, () => "none");
    const [{ url = "" }, { url: contracted = "" }] = await Promise.all([
      plain.listen({ port: 0 }),
      signed.listen({ port: 0 }),
    ]);
    const target = (name: string, to: string) => ({ name, configured: true, config: { url: to } });
    const options = { keys: ring, context: { user_id: "alice" } };
    const reports = await Promise.all([
      examine([target("plain", url), target("orders", contracted)], options),
      examine([target("orders", contracted)], { ...options, revision: "2025-11-25" }),
      examine([target("orders", contracted)], {}),
    ]);
    const [modern, legacy, without] = reports.map(({ targets }) => targets);
    expect([modern, legacy].map((all) => all?.map(({ findings }) => findings))).toEqual([[[], []], [[]]]);
    expect(modern?.[1]).toMatchObject({
      ok: true,
      era: "modern",
      facts: { tools: 1, contract: { signature: "right", required: ["user_id"] } },
    });
    expect(legacy?.[0]).toMatchObject({ ok: true, era: "legacy", facts: { contract: { signature: "right" } } });
    expect(without?.[0]?.findings.map(({ code }) => code)).toEqual(["context_needed"]);
    expect(without?.[0]?.ok).toBe(true);
    await Promise.all([plain.close(), signed.close()]);
  });
  it("of others, over stdio, has nothing to be flagged", async () => {
    const bin = fileURLToPath(new URL("../../../node_modules/.bin/mcp-server-everything", import.meta.url));
    const { code, report, codes } = await doctor(["--timeout-ms", "20000", "--", process.execPath, bin, "stdio"]);
    expect([code, codes]).toEqual([0, [[]]]);
    expect(report).toMatchObject({ ok: true, targets: [{ era: "legacy", facts: { revision: "2025-11-25" } }] });
    expect(report?.targets[0]?.facts.tools).toBeGreaterThan(5);
  });
});

describe.concurrent("tenon doctor", () => {
  it("ends in time with the code of the layer, and its children with it", async () => {
    const pid = join(folder, "pid");
    const stubborn = `process.on("SIGTERM", () => {}); process.stdin.on("end", () => {}); setInterval(() => {}, 1000);
      require("node:fs").writeFileSync(${JSON.stringify(pid)}, String(process.pid))`;
    const [{ code, codes, ms }, start] = await Promise.all([
      doctor(["--", process.execPath, "-e", stubborn]),
      doctor(["http://127.0.0.1:1/mcp"]), // what starting a program takes here and now
    ]);
    expect([code, codes]).toEqual([9, [["process_silent"]]]);
    expect(ms - start.ms).toBeLessThan(LIMIT_MS);
    await vi.waitFor(() => expect(stateOf(pid)).toMatch(GONE));
  });
  it("leaves nothing behind of a process that ended and left another one", async () => {
    const pid = join(folder, "left");
    const leave = `require("node:fs").writeFileSync(${JSON.stringify(pid)},
      String(require("node:child_process").spawn("sleep", ["60"], { stdio: "inherit" }).pid)); process.exit(2)`;
    const config = { command: process.execPath, args: ["-e", leave] };
    const report = await examine([{ name: "s", configured: false, config }]);
    expect(report.targets[0]?.findings[0]?.code).toBe("exited");
    await vi.waitFor(() => expect(stateOf(pid)).toMatch(GONE));
  });
  it("names the proxy that stands in between", async () => {
    const page = createHttpServer((_, res) =>
      res.writeHead(200, { "content-type": "text/html" }).end("<html><title>Sign in to the hotel</title>"),
    );
    await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
    const { port } = page.address() as AddressInfo;
    const proxy = `http://user:hunter22@127.0.0.1:${port}`;
    const [html, refused, none] = await Promise.all([
      doctor(["http://tools.example/mcp"], { http_proxy: proxy }),
      doctor(["https://tools.example/mcp"], { https_proxy: proxy }),
      doctor(["https://tools.example/mcp"], { https_proxy: "http://127.0.0.1:9" }),
    ]);
    expect([html.codes, refused.codes, none.codes]).toEqual([
      [["proxy_html"]],
      [["proxy_refused"]],
      [["proxy_unreachable"]],
    ]);
    expect([html.code, refused.code, none.code]).toEqual([3, 3, 3]);
    expect(html.stdout).toContain("Sign in to the hotel");
    expect(html.stdout + refused.stdout + html.stderr).not.toContain("hunter22");
    page.close();
  });
  it("examines every server of a configuration, and what they have in common", async () => {
    const [a, b] = await Promise.all([stubHttp({ tools: ["echo", "a"] }), stubHttp({ tools: ["echo"] })]);
    const servers = {
      a: a.config,
      b: b.config,
      c: { command: "no-such-program" },
      off: { command: "x", disabled: true },
    };
    const file = join(folder, "mcp.json");
    writeFileSync(file, JSON.stringify({ mcpServers: servers }));
    const { code, codes, report } = await doctor([file]);
    expect(codes).toEqual([[], ["tool_collision"], ["command_not_found"]]);
    expect(report?.targets[1]?.findings[0]).toMatchObject({
      severity: "warning",
      fix: expect.stringContaining("name the server"),
    });
    expect(report?.targets.map(({ target, ok }) => [target, ok])).toEqual([
      ["a", true],
      ["b", true],
      ["c", false],
    ]);
    expect(code).toBe(9);
    await Promise.all([a.close(), b.close()]);
  });
  it("holds replicas of one server against each other, and takes keys and context from the configuration", async () => {
    const capabilities = { tools: {}, extensions: { "dev.tenon/context": ring.sign(declared(["tools.list"])) } };
    const [a, b, c] = await Promise.all(
      [["echo"], ["echo"], ["echo", "new"]].map((tools) => stubHttp({ capabilities, tools })),
    );
    const contract = {
      keys: writeContractKeys([KEY]),
      context: { tenant: "acme" },
      schema: { properties: { user_id: { type: "number" } } },
    };
    const file = join(folder, "replicas.json");
    const kb = { replicas: [a?.url, b?.url, c?.url], contract };
    writeFileSync(file, JSON.stringify({ mcpServers: { kb } }));
    const { codes, report } = await doctor([file]);
    const wrong = ["contract_conflict", "context_missing_field"];
    expect(codes).toEqual([wrong, wrong, [...wrong, "replica_drift", "replica_drift"]]);
    expect(report?.targets[2]?.findings.at(-1)?.evidence).toBe(`new only here`);
    expect(report?.targets[0]?.facts.contract?.signature).toBe("right");
    await Promise.all([a, b, c].map((stub) => stub?.close()));
  });
  it("takes token, keys and headers from where nobody sees them, and repeats none", async () => {
    const given: (string | undefined)[] = [];
    const stub = await stubHttp({
      onHttp: (req, res) => {
        given.push(req.headers.authorization, req.headers["x-tenant"]?.toString());
        return Boolean(res.writeHead(500).end(`you sent ${req.headers.authorization} and ${req.url} \u001b[31m`));
      },
    });
    const env = { TOKEN: "token-that-is-secret", TENON_CONTRACT_KEYS: writeContractKeys([KEY]) };
    const args = ["--token-env", "TOKEN", "--header", "X-Tenant: acme-secret", `${stub.url}?key=query-secret`];
    const { code, codes, stdout, stderr } = await doctor(args, env);
    expect([code, codes]).toEqual([4, [["server_error"]]]);
    expect(given.slice(0, 2)).toEqual(["Bearer token-that-is-secret", "acme-secret"]);
    expect(stdout + stderr).not.toMatch(/that-is-secret|acme-secret|query-secret|\\u001b/);
    await stub.close();
  });
  it("opens and closes a session, and calls nothing", async () => {
    const stub = await stubHttp({ era: "legacy" });
    const report = await examine([{ name: "s", configured: false, config: stub.config }]);
    expect(report.ok).toBe(true);
    const methods = stub.requests.map(({ method }) => method);
    expect(methods).toEqual(["server/discover", "initialize", "notifications/initialized", "tools/list"]);
    expect(stub.hits.at(-1)?.method).toBe("DELETE");
    await stub.close();
  });
  it("asks for one revision where one is given", async () => {
    const stub = await stubHttp({ era: "modern" });
    const target = { name: "s", configured: false, config: stub.config };
    const report = await examine([target], { revision: "2025-06-18" });
    const [finding] = report.targets[0]?.findings ?? [];
    expect(finding).toMatchObject({ code: "version_mismatch", evidence: expect.stringContaining("speaks 2026-07-28") });
    expect(stub.requests[0]).toMatchObject({ method: "initialize", params: { protocolVersion: "2025-06-18" } });
    await stub.close();
  });
  it.each<[string, string[], string]>([
    ["nothing to examine", [], "configuration file"],
    ["a word that is neither address nor file", ["server"], "tenon doctor -- server"],
    ["an address beside a command", ["http://127.0.0.1:9", "--", "node"], "one of the two"],
    ["an address of another kind", ["ftp://x"], "http://"],
    [
      "a port that there is not",
      ["http://u:secret-thing@x:99999/?key=secret-thing"],
      "http://x:99999/?… is no address",
    ],
    ["a variable that is not set", ["--token-env", "NOT_THERE", "http://127.0.0.1:9"], "NOT_THERE"],
    ["a header without a value", ["--header", "secret-thing", "http://127.0.0.1:9"], "Name: value"],
    ["an address without its beginning", ["127.0.0.1:9/mcp"], "write http://127.0.0.1:9/mcp"],
    ["a context that is no JSON", ["--context", "{", "http://127.0.0.1:9"], "user_id"],
  ])("refuses %s: exit code 2", async (_, args, message) => {
    const { code, stdout, stderr } = await doctor(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("secret-thing");
  });
  it("says that it could not read a configuration: exit code 1", async () => {
    const { code, stderr } = await doctor(["nowhere.json"]);
    expect(code).toBe(1);
    expect(stderr).toContain("nothing was examined");
    expect(stderr).toContain("there is no file nowhere.json");
  });
});

describe("the report", () => {
  it("is read in 80 columns, with the code, what was seen and what to do", () => {
    for (const { report } of results.values()) {
      const text = reportText(report);
      // only a word that is longer than a line may stand out
      const wide = text.split("\n").filter((line) => line.length > 80 && line.slice(10).trim().includes(" "));
      expect(wide).toEqual([]);
      for (const { code, fix } of report.targets[0]?.findings ?? []) {
        expect(text.replaceAll(/\s+/g, " ")).toContain(`[${code}]`);
        expect(text.replaceAll(/\s+/g, " ")).toContain(fix.replaceAll(/\s+/g, " "));
      }
    }
  });
  it("has an exit code for each layer", () => {
    const codes = new Map(
      everything.map((one) => [one[1], exitCodeOf(results.get(one)?.report ?? { ok: true, targets: [] })]),
    );
    expect(codes.get("refused")).toBe(3);
    expect([codes.get("wrong_path"), codes.get("version_mismatch"), codes.get("auth_scope")]).toEqual([4, 5, 6]);
    expect([codes.get("contract_invalid"), codes.get("schema_missing"), codes.get("exited")]).toEqual([7, 8, 9]);
    expect([codes.get("slow_start"), codes.get("tool_name")]).toEqual([0, 0]);
  });
  it("uses codes that the documentation lists, all of them and no other", () => {
    const page = readFileSync(new URL("../../../docs/doctor.md", import.meta.url), "utf8");
    const listed = [...page.matchAll(/^\| `(\w+)` +\|/gm)].map(([, code]) => code);
    expect(listed.sort()).toEqual(Object.keys(CODES).sort());
  });
});
