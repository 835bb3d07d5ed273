import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import type { TenonServer } from "../src/index.ts";
import { secrets } from "./leak-server.ts";
import { initialize, legacy, META, modern, overSocket, type Raw, sessionOf } from "./raw-requests.ts";

// Nothing of one caller may ever reach another: late notifications, progress, log messages, errors or answers, although all
// ids and tokens are equal and every third caller leaves at a random moment.

// few in `npm test`, more where fuzzing is longer
const CALLS = process.env.TENON_FUZZ_RUNS ? 2_000 : 600;
const agent = new Agent({ keepAlive: true });
let server: TenonServer;
let url: string;
const aborted = new Set<string>();

beforeAll(async () => {
  server = secrets(aborted);
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  agent.destroy();
  await server.close();
});

/** The names in everything a caller received. */
const namesIn = (text: string): string[] => [...new Set([...text.matchAll(/<(\w+)>/g)].map((match) => match[1] ?? ""))];

/** Sends one request; resolves with all that came back until the end or until the caller left. */
function viaSocket(raw: Raw, signal: AbortSignal, first: () => void): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const sent = httpRequest(url, { method: "POST", agent, headers: raw.headers ?? {}, signal }, (response) => {
      response.setEncoding("utf8");
      response.on("data", (part) => {
        text += part;
        first();
      });
      response.on("end", () => resolve(text));
      response.on("error", (error) => resolve(signal.aborted ? text : `${text} failed: ${error}`));
    });
    sent.on("error", (error) => resolve(signal.aborted ? text : `${text} failed: ${error}`));
    sent.end(raw.body);
  });
}

async function viaFetch(raw: Raw, signal: AbortSignal, first: () => void): Promise<string> {
  let text = "";
  try {
    const response = await server.fetch(
      new Request("http://127.0.0.1/mcp", { method: "POST", headers: raw.headers ?? {}, body: raw.body ?? "", signal }),
    );
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) {
      text += decoder.decode(part, { stream: true });
      first();
    }
  } catch {
    // the caller left
  }
  return text;
}

/** A third of the callers leave, half of those in the middle of what they hear. */
const leavesOnHearing = (index: number): boolean => index % 6 === 0;

const call = (who: string, waits: boolean): Record<string, unknown> => ({
  name: "secret",
  arguments: { who, ms: Math.random() * 200, waits },
});
const asModern = (who: string, index: number): Raw =>
  modern("tools/call", call(who, leavesOnHearing(index)), { meta: { progressToken: "p", [META.level]: "debug" } });
const asLegacy = (who: string, index: number): Raw =>
  legacy("tools/call", { ...call(who, leavesOnHearing(index)), _meta: { progressToken: "p" } });

async function sessionCalls(): Promise<(who: string, index: number) => Raw> {
  const ids = await Promise.all(
    Array.from({ length: 200 }, async () => {
      return sessionOf(await overSocket(url, initialize()));
    }),
  );
  // within a session an id stands for one call; between sessions all ids and tokens are equal
  return (who, index) => {
    const id = Math.floor(index / ids.length) + 1;
    const headers = ids[index % ids.length] ?? {};
    // on a session the call goes on when its caller leaves, since it may resume
    return legacy("tools/call", { ...call(who, false), _meta: { progressToken: id } }, { headers, message: { id } });
  };
}

describe(`${CALLS} concurrent calls with equal ids, every third aborted`, () => {
  it.each([
    ["fetch modern", viaFetch, async () => asModern],
    ["fetch legacy", viaFetch, async () => asLegacy],
    ["listen modern", viaSocket, async () => asModern],
    ["listen legacy", viaSocket, async () => asLegacy],
    ["legacy sessions", viaSocket, sessionCalls],
  ] as const)(
    "never mix over %s",
    async (path, send, prepare) => {
      aborted.clear();
      const make: (who: string, index: number) => Raw = await prepare();
      const mark = path.replace(/\W/g, "");
      const results = await Promise.all(
        Array.from({ length: CALLS }, async (_, index) => {
          const who = `${mark}${index}`;
          const leaves = index % 3 === 0;
          const leaving = new AbortController();
          // some at a random moment, some in the middle of what they hear
          const first = leavesOnHearing(index) ? () => leaving.abort() : () => undefined;
          const timer =
            leaves && !leavesOnHearing(index) ? setTimeout(() => leaving.abort(), Math.random() * 500) : undefined;
          const text = await send(make(who, index), leaving.signal, first);
          clearTimeout(timer);
          return { who, leaves, text };
        }),
      );
      await sleep(100);
      for (const { who, leaves, text } of results) {
        const names = namesIn(text);
        if (names.length > 0 || !leaves) expect(names, text).toEqual([who]);
        if (!leaves) expect(text, who).toContain(`${who.endsWith("7") ? "no luck" : "done"} for <${who}>`);
      }
      // those who left in time were told so: on a session the call goes on, since its client may resume
      if (path !== "legacy sessions") expect(aborted.size).toBeGreaterThan(0);
      for (const who of aborted) expect(results.find((result) => result.who === who)?.leaves).toBe(true);
    },
    120_000,
  );
});

interface Line {
  id?: number;
  method?: string;
  params?: { progressToken?: number };
  result?: { content: { text: string }[] };
}

// one client to a process: what may mix there are its own calls, so ids and tokens tell them apart
describe.each(["modern", "legacy"] as const)(
  `${CALLS} concurrent calls on one standard input, every third cancelled, %s`,
  (era) => {
    it("never mix, and are silent after their answer", async () => {
      const child = spawn(process.execPath, [await program("./leak-server.ts", import.meta.url)], {
        stdio: ["pipe", "pipe", "ignore"],
      });
      const write = (message: string): void => void child.stdin.write(`${message}\n`);
      const whoIs = (id: number): string => `stdio${id}`;
      const leaves = (id: number): boolean => id % 3 === 0;
      const cancelled = new Set<number>();
      const cancel = (requestId: number): void => {
        if (cancelled.has(requestId)) return;
        cancelled.add(requestId);
        write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }));
      };
      const lines: Line[] = [];
      const answered = new Set<number>();
      let check: () => void = () => undefined;
      createInterface({ input: child.stdout }).on("line", (text) => {
        const line = JSON.parse(text) as Line;
        lines.push(line);
        const token = line.params?.progressToken;
        if (token !== undefined && leavesOnHearing(token)) cancel(token);
        if (line.id !== undefined) answered.add(line.id);
        check();
      });
      if (era === "legacy") {
        write(String(initialize().body).replace('"id":1', '"id":0'));
        write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
      }
      const ids = Array.from({ length: CALLS }, (_, index) => index + 1);
      for (const id of ids) {
        const given = call(whoIs(id), leavesOnHearing(id));
        const meta = { progressToken: id, ...(era === "modern" && { [META.level]: "debug" }) };
        const raw =
          era === "modern"
            ? modern("tools/call", given, { meta, message: { id } })
            : legacy("tools/call", { ...given, _meta: meta }, { message: { id } });
        write(String(raw.body));
        if (leaves(id) && !leavesOnHearing(id)) setTimeout(cancel, Math.random() * 500, id);
      }
      await new Promise<void>((resolve) => {
        check = () => {
          if (ids.every((id) => answered.has(id) || (leaves(id) && cancelled.has(id)))) resolve();
        };
        check();
      });
      await sleep(500);
      child.stdin.end();
      await once(child, "exit");

      const over = new Set<number>();
      for (const line of lines) {
        const of = line.id ?? line.params?.progressToken;
        expect(JSON.stringify(line)).not.toContain("late secret");
        if (of === undefined || of === 0) continue;
        expect(namesIn(JSON.stringify(line))).toEqual([whoIs(of)]);
        expect(over.has(of), `${JSON.stringify(line)} came after the answer`).toBe(false);
        if (line.id !== undefined) over.add(line.id);
      }
      for (const id of ids) if (!leaves(id)) expect(over.has(id)).toBe(true);
      expect(cancelled.size).toBeGreaterThan(CALLS / 4);
      expect([...cancelled].filter((id) => !over.has(id)).length).toBeGreaterThan(0);
    }, 120_000);
  },
);
