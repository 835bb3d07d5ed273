// One file, several processes on one port: killed under load, ended together, on both revisions.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@tenon/client";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { connect } from "../../server/test/servers.ts";
import { running } from "./tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-workers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const YAML = `
server: { name: busy, port: 0 }
tools:
  who: { function: "./tools.mjs#who", annotations: { readOnlyHint: true } }
  slow: { function: "./tools.mjs#slow" }
  sure: { function: "./tools.mjs#sure" }
`;
const TOOLS = `
import { existsSync } from "node:fs";
if (existsSync("broken")) throw new Error("the disk is gone");
export const who = async () => {
  await new Promise((resolve) => setTimeout(resolve, 2));
  return process.pid;
};
export const slow = () => new Promise((resolve) => setTimeout(resolve, 60_000).unref());
export async function sure(_, ctx) {
  const first = await ctx.step("first", () => process.pid);
  const { data } = await ctx.elicit("Sure?", ["yes", "no"]);
  return { first, second: process.pid, data };
}
`;

async function serve(workers: number, env: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(folder, "cwd-"));
  writeFileSync(join(cwd, "tenon.yaml"), YAML);
  writeFileSync(join(cwd, "tools.mjs"), TOOLS);
  const args = ["serve", "--config", "tenon.yaml", "--workers", String(workers), "--admin-port", "0"];
  const server = await running(args, { cwd, env });
  return { ...server, cwd, url: String(server.ready.url), admin: String(server.ready.admin) };
}
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const textOf = ({ content }: { content: readonly unknown[] }): string => String((content[0] as { text: string }).text);

/** Which processes serve, asked with as many connections as it takes. */
async function pidsOf({ url }: { url: string }, count: number): Promise<number[]> {
  const pids = new Set<number>();
  for (let turn = 0; turn < 20 && pids.size < count; turn++) {
    await using client = createClient({ servers: { busy: { url } } });
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.callTool("busy", "who")));
    for (const answer of answers) pids.add(Number(textOf(answer)));
  }
  return [...pids];
}

describe("several workers on one port", { timeout: 60_000 }, () => {
  let server: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    server = await serve(3);
  }, 60_000);
  afterAll(() => server.stop("SIGKILL"));

  it("let one after the other be killed under load without an error of a tool that only reads, and replace it", async () => {
    const pids = await pidsOf(server, 3);
    expect(pids).toHaveLength(3);
    expect(pids).not.toContain(server.pid);
    await using client = createClient({ servers: { busy: { url: server.url } } });
    const errors: unknown[] = [];
    let ended = false;
    let calls = 0;
    const load = Array.from({ length: 12 }, async () => {
      while (!ended) {
        await client.callTool("busy", "who").catch((error: unknown) => errors.push(error));
        calls += 1;
      }
    });
    const status = async () => (await fetch(`${server.admin}/readyz`)).status;
    for (const [at, pid] of pids.slice(0, 2).entries()) {
      await sleep(200);
      const [signal, how] = [["SIGKILL", "by SIGKILL"] as const, ["SIGTERM", "with exit code 0"] as const][at] ?? [];
      process.kill(pid, signal);
      await vi.waitFor(() => expect(server.output.stderr).toContain(`worker ${pid} ended ${how}`), 5_000);
      expect(await status()).toBe(503);
      await vi.waitFor(async () => expect(await status()).toBe(200), { timeout: 15_000, interval: 100 });
    }
    ended = true;
    await Promise.all(load);
    expect(errors).toEqual([]);
    expect(calls).toBeGreaterThan(50);
    const now = await pidsOf(server, 3);
    expect(now.filter((pid) => pids.includes(pid))).toEqual([pids[2]]);
    const numbers = await (await fetch(`${server.admin}/metrics`)).text();
    for (const worker of [1, 2, 3]) {
      expect(numbers).toMatch(new RegExp(`^tenon_tool_calls_total\\{worker="${worker}",.*tool="who"`, "m"));
    }
    expect(numbers.match(/^# TYPE tenon_tool_calls_total /gm)).toHaveLength(1);
  });

  it("answer a question that another one asked, with what was done before it", async () => {
    const rounds: { first: number; second: number; data: string }[] = [];
    for (let turn = 0; turn < 12 && !rounds.some(({ first, second }) => first !== second); turn++) {
      // other connections come in between: the next worker has its turn
      const elicitation = async () => {
        await pidsOf(server, 1);
        return { action: "accept", content: { value: "yes" } } as const;
      };
      await using client = createClient({ servers: { busy: { url: server.url } }, elicitation });
      const answers = await Promise.all([1, 2, 3].map(() => client.callTool("busy", "sure")));
      rounds.push(...answers.map((answer) => JSON.parse(textOf(answer))));
    }
    expect(rounds.every(({ data }) => data === "yes")).toBe(true);
    expect(rounds.some(({ first, second }) => first !== second)).toBe(true);
  });

  it("serve clients of the older revision without sessions, and say so to one that brings a session", async () => {
    const client = await connect(server.url, "legacy");
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.callTool({ name: "who" })));
    expect(answers.every((answer) => /^\d+$/.test(textOf(answer as { content: unknown[] })))).toBe(true);
    await client.close();
    const accept = "application/json, text/event-stream";
    const headers = { "content-type": "application/json", accept, "mcp-session-id": "gone" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const refused = await fetch(server.url, { method: "POST", headers, body });
    const error = { code: -32001, message: "Session not found; initialize again" };
    expect([refused.status, await refused.json()]).toMatchObject([404, { error }]);
  });

  it("end together within seconds, also while a call runs", async () => {
    const workers = await pidsOf(server, 3);
    await using client = createClient({ servers: { busy: { url: server.url } } });
    const call = client.callTool("busy", "slow").catch((error) => error.code);
    await sleep(200);
    const begin = Date.now();
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(Date.now() - begin).toBeLessThan(6_000);
    expect(await call).toBe("lost");
    expect(workers.filter(isAlive)).toEqual([]);
  });
});

describe.concurrent("workers", { timeout: 60_000 }, () => {
  const database = process.env.TENON_TEST_DATABASE_URL;
  it.runIf(database)("share what waits in Postgres where an address is given", async () => {
    const schema = `serve_${process.pid}`;
    const server = await serve(2, { TENON_DATABASE_URL: database ?? "", TENON_DATABASE_SCHEMA: schema });
    const elicitation = () => ({ action: "accept", content: { value: "no" } }) as const;
    await using client = createClient({ servers: { busy: { url: server.url } }, elicitation });
    const answers = await Promise.all([1, 2, 3, 4].map(() => client.callTool("busy", "sure")));
    expect(answers.map((answer) => JSON.parse(textOf(answer)).data)).toEqual(["no", "no", "no", "no"]);
    expect(readdirSync(join(server.cwd, ".tenon"))).not.toContain("tenon.sqlite");
    expect(await server.stop()).toBe(0);
    const admin = new pg.Client({ connectionString: database });
    await admin.connect();
    await admin.query(`drop schema "${schema}" cascade`);
    await admin.end();
  });

  it("end with the process that watches over them", async () => {
    const server = await serve(2);
    const workers = await pidsOf(server, 2);
    await server.stop("SIGKILL");
    await vi.waitFor(() => expect(workers.filter(isAlive)).toEqual([]), 5_000);
  });

  it("are given up when they end as fast as they start, with the reason", async () => {
    const server = await serve(2);
    writeFileSync(join(server.cwd, "broken"), "");
    for (const pid of await pidsOf(server, 2)) process.kill(pid, "SIGKILL");
    expect(await server.ended).toBe(1);
    expect(server.output.stderr).toMatch(
      /the workers end as fast as they start\n {2}why: .*tools\.mjs, which cannot be loaded: the disk is gone/,
    );
  });
});
