import { spawn } from "node:child_process";
import server from "./fixture/server.ts";
import type { Check, Scenario } from "./results.ts";
import { inspector, root, suiteNode, TYPESCRIPT } from "./suite.ts";

const LIMIT_MS = 60_000;
const ERAS = ["modern", "legacy"];
const TOOL = "test_simple_text";
/** What the answer of a method must contain. */
const METHODS: Readonly<Record<string, { args: readonly string[]; expected: string }>> = {
  "tools/list": { args: [], expected: `"name": "${TOOL}"` },
  "tools/call": { args: ["--tool-name", TOOL], expected: "This is a simple text response for testing." },
};

/** Runs the Inspector's command line. @returns its standard output, or what went wrong */
async function inspect(args: readonly string[]): Promise<{ out: string; error?: string }> {
  const child = spawn(suiteNode(), [inspector, "--cli", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LIMIT_MS,
  });
  let out = "";
  let error = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  child.stderr.on("data", (data) => {
    error = (error + data).slice(-2_000);
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  return code === 0 ? { out } : { out, error: `ended with ${code}: ${error.trim()}` };
}

async function check(id: string, target: readonly string[], era: string): Promise<Check> {
  const { args = [], expected = "" } = METHODS[id] ?? {};
  const { out, error } = await inspect([...target, "--method", id, "--protocol-era", era, ...args]);
  if (error !== undefined) return { id, status: "FAILURE", message: error };
  if (out.includes(expected)) return { id, status: "SUCCESS", message: undefined };
  return { id, status: "FAILURE", message: `no ${expected} in ${out.slice(0, 500)}` };
}

/** The official Inspector's command line against our server: lists the tools and calls one, both transports and eras. */
export async function inspectAll(): Promise<Scenario[]> {
  const { url } = await server.listen({ port: 0 });
  const targets = {
    stdio: [process.execPath, ...TYPESCRIPT, "conformance/fixture/server.ts"],
    HTTP: ["--server-url", url, "--transport", "http"],
  };
  const scenarios: Scenario[] = [];
  for (const [transport, target] of Object.entries(targets)) {
    for (const era of ERAS) {
      const checks: Check[] = [];
      for (const id of Object.keys(METHODS)) checks.push(await check(id, target, era));
      const failed = checks.filter(({ status }) => status === "FAILURE").length;
      scenarios.push({ name: `${transport}, ${era} era`, checks, passed: checks.length - failed, failed });
    }
  }
  await server.close();
  return scenarios;
}
