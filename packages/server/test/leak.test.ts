import { Agent, request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type TenonServer, ToolError } from "../src/index.ts";
import { initialize, legacy, META, modern, overSocket, type Raw, sessionOf } from "./raw-requests.ts";

// Nothing of one caller may ever reach another: late notifications, progress, log messages, errors or answers, although all
// ids and tokens are equal and every third caller leaves at a random moment.

const CALLS = 2_000;
const agent = new Agent({ keepAlive: true });
let server: TenonServer;
let url: string;
const aborted = new Set<string>();

beforeAll(async () => {
  server = createServer({ name: "secrets", version: "1.0.0", logSink: () => undefined });
  const input = z.object({ who: z.string(), ms: z.number(), waits: z.boolean() });
  server.tool("secret", { input }, async ({ who, ms, waits }, ctx) => {
    let running = true;
    const left = new Promise<void>((resolve) => {
      const leave = (): void => {
        if (running) aborted.add(who);
        resolve();
      };
      if (ctx.signal.aborted) leave();
      else ctx.signal.addEventListener("abort", leave, { once: true });
    });
    for (let i = 1; i <= 3; i++) {
      await sleep(ms);
      // not awaited, and some of it after the caller left or the answer went out: what careless handlers do
      void ctx.progress(i, 3, `secret of <${who}>`);
      void ctx.log.warning(`secret of <${who}>`);
    }
    // its caller leaves as soon as it hears something, however busy this machine is
    if (waits) await Promise.race([left, sleep(20_000)]);
    setTimeout(() => {
      void ctx.progress(4, 4, `late secret of <${who}>`);
      void ctx.log.error(`late secret of <${who}>`);
    }, ms);
    running = false;
    if (who.endsWith("7")) throw new ToolError(`no luck for <${who}>`);
    return `done for <${who}>`;
  });
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
