import { createHash } from "node:crypto";
import { setMaxListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ContractError, META } from "@tenon/core";
import { createKeyRing, newContractKey } from "@tenon/core/contract";
import { Agent, request } from "undici";
import { describe, expect, it } from "vitest";
import type { ConnectionHooks } from "../src/connection/connection.ts";
import { openConnection } from "../src/connection/open.ts";
import { Pools } from "../src/connection/pool.ts";
import type { Terms } from "../src/contract/judge.ts";
import { type Answer, climb } from "../src/contract/ladder.ts";
import { STEP_MS, type Step } from "../src/contract/steps.ts";
import type { ContractEvent, ContractWay, ServerContract } from "../src/index.ts";
import { createPeerAnswers } from "../src/question/peer-requests.ts";
import { closeAfterEach, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

const WAYS: readonly ContractWay[] = ["0.4.2", "0.4.2 without expires_at", "0.4.1", "plain"];
const DELAY_MS = 1_200;
const LATE = 0.12;
const TICK_MS = 100;
/** Few enough that a busy machine is not what makes a server late. */
const AT_ONCE = 40;

/** A number from 0 to 1 that is the same in every run. */
const drawn = (...of: readonly unknown[]): number =>
  createHash("sha256")
    .update(`seed 9 ${of.join(" ")}`)
    .digest()
    .readUInt32BE(0) /
  2 ** 32;
const isLate = (negotiation: number, way: ContractWay): boolean => drawn(negotiation, way) < LATE;

function wayOf(meta: Record<string, unknown>): ContractWay {
  if (meta[META.contract] === "0.4.1") return "0.4.1";
  if (meta[META.contract] === undefined) return "plain";
  return meta[META.contractWithout] === undefined ? "0.4.2" : "0.4.2 without expires_at";
}

const base = {
  server_id: "orders",
  capabilities: ["tools.execute"],
  context_schema: { type: "object", properties: { user_id: { type: "string" } } },
} as const;

/** A server that is late now and then, and announces what it is told to. */
function flaky(announce: (negotiation: number, way: ContractWay) => object | undefined) {
  return start(
    stubHttp({
      on: {
        "server/discover": async ({ params, headers }) => {
          const negotiation = Number(headers["x-negotiation"]);
          const way = wayOf(params._meta as Record<string, unknown>); // every request has it
          if (isLate(negotiation, way)) await new Promise((resolve) => setTimeout(resolve, DELAY_MS));
          const announced = announce(negotiation, way);
          return {
            supportedVersions: ["2026-07-28"],
            capabilities: { tools: {}, ...(announced && { extensions: { [META.context]: announced } }) },
            serverInfo: { name: "stub", version: "1" },
          };
        },
        initialize: (_, reply) => void reply.error(-32_601, "no handshake here"),
      },
    }),
  );
}

interface Outcome {
  readonly events: readonly ContractEvent[];
  readonly error?: unknown;
  readonly signed?: boolean | undefined;
}

/** Negotiates as often, some at a time, each as if nothing were known of the server. */
async function negotiate(url: string, times: number, contract: ServerContract): Promise<readonly Outcome[]> {
  const pools = new Pools();
  const hooksFor = (events: ContractEvent[]): ConnectionHooks => ({
    info: { name: "test", version: "1" },
    elicitation: false,
    pools,
    notifications: {},
    peers: createPeerAnswers({}),
    onContract: (event) => void events.push(event),
    onQuestion: () => Promise.reject(new Error("nobody asks")),
  });
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const outcomes: Outcome[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < times; n = next++) {
      const events: ContractEvent[] = [];
      const config = { url, headers: { "x-negotiation": String(n) }, contract };
      const onClosing = () => {};
      try {
        const opened = await openConnection("s", config, hooksFor(events), { known: undefined, signal, onClosing });
        outcomes[n] = { events, signed: opened.connection.contract?.info.signed };
        await opened.connection.close();
      } catch (error) {
        outcomes[n] = { events, error };
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await pools.close();
  return outcomes;
}

/** Waits in short steps: a machine that stands still for a moment makes both sides wait for one step, and nobody late. */
async function inTicks(ms: number, signal?: AbortSignal): Promise<void> {
  for (let waited = 0; waited < ms && signal?.aborted !== true; waited += TICK_MS) {
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
}

/** The same over the ladder alone, with a request of one's own for each step: as many as a busy machine can serve. */
async function climbOften(times: number): Promise<readonly Outcome[]> {
  const server = createServer((request, response) => {
    const negotiation = Number(request.headers["x-negotiation"]);
    const way = WAYS[Number(request.headers["x-step"])] ?? "plain";
    const answer = () => response.end(JSON.stringify(announcedBy(way) ?? null));
    if (isLate(negotiation, way)) void inTicks(DELAY_MS).then(answer);
    else answer();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const agent = new Agent();
  const terms: Terms = { server: "s", ring: undefined, plain: true, schema: undefined };
  const outcomes: Outcome[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < times; n = next++) {
      const events: ContractEvent[] = [];
      const ask = async (step: Step): Promise<Answer<undefined>> => {
        const budget = new AbortController();
        void inTicks(STEP_MS, budget.signal).then(() => budget.abort(new DOMException("late", "TimeoutError")));
        const headers = { "x-negotiation": String(n), "x-step": String(WAYS.indexOf(step.way)) };
        const { signal } = budget;
        const answered = await request(`http://127.0.0.1:${port}`, { dispatcher: agent, headers, signal });
        const announced: unknown = await answered.body.json();
        budget.abort();
        return { value: undefined, announced: announced ?? undefined };
      };
      const failing = (error: unknown) =>
        error instanceof Error && error.name === "TimeoutError" ? ({ outcome: "late" } as const) : undefined;
      const tell = (event: ContractEvent) => void events.push(event);
      outcomes[n] = await climb({ terms, ask, failing, tell }).then(
        () => ({ events }),
        (error: unknown) => ({ events, error }),
      );
    }
  };
  await Promise.all(Array.from({ length: 5 * AT_ONCE }, worker));
  await agent.destroy();
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return outcomes;
}

/** What a server with a contract announces when it is asked in a way. */
function announcedBy(way: ContractWay): object | undefined {
  const version = { "0.4.2": "0.4.2", "0.4.2 without expires_at": "0.4.2", "0.4.1": "0.4.1", plain: undefined }[way];
  return version === undefined ? undefined : { ...base, version };
}

describe("a server that is often late with its answer", () => {
  it.each([
    ["five thousand negotiations of the ladder", 5_000, climbOften],
    [
      "three hundred connections",
      300,
      async (times: number) => negotiate((await flaky((_, way) => announcedBy(way))).url, times, {}),
    ],
  ] as const)(
    "is agreed with in all but one of a thousand, and each step is told: %s",
    async (_, times, run) => {
      const outcomes = await run(times);
      expect(outcomes).toHaveLength(times);
      const failed = outcomes.filter(({ error }) => error !== undefined);
      expect(failed.length).toBeLessThan(5);
      for (const [n, { events, error }] of outcomes.entries()) {
        const [event, ...more] = events;
        expect(more).toEqual([]);
        const told = event?.steps.map(({ step, outcome }) => `${step} ${outcome}`) ?? [];
        const on = WAYS.findIndex((way) => !isLate(n, way));
        // a busy machine may be late as well
        expect(told.length).toBeGreaterThan(on === -1 ? 3 : on);
        expect(told.slice(0, -1).every((line) => line.endsWith(" late"))).toBe(true);
        if (error === undefined) expect(event?.accepted).toBe(event?.steps.at(-1)?.step);
        else expect(error).toMatchObject({ code: "negotiation", retryable: true, data: { steps: event?.steps } });
      }
      expect(failed.every(({ error }) => error instanceof ContractError)).toBe(true);
    },
    60_000,
  );

  it("is never used without a signature by a client that has keys, whatever is late", async () => {
    const key = newContractKey({ kid: "k", alg: "HS256" });
    const [ring, forger] = [createKeyRing([key]), createKeyRing([newContractKey({ kid: "k", alg: "HS256" })])];
    const kinds = ["signed", "unsigned", "nothing", "forged", "signed", "changed"] as const;
    const kindOf = (n: number, way: ContractWay) =>
      kinds[Math.floor(drawn("kind", n, way) * kinds.length)] ?? "nothing";
    const seen = new Map<number, string[]>();
    const server = await flaky((n, way) => {
      const kind = kindOf(n, way);
      seen.set(n, [...(seen.get(n) ?? []), kind]);
      const version = way === "0.4.1" ? "0.4.1" : "0.4.2";
      if (kind === "nothing") return undefined;
      if (kind === "unsigned") return { ...base, version };
      if (kind === "changed")
        return { ...ring.sign({ ...base, version }), capabilities: ["tools.execute", "prompts.get"] };
      return (kind === "signed" ? ring : forger).sign({ ...base, version });
    });
    const outcomes = await negotiate(server.url, 600, { keys: [key] });
    let accepted = 0;
    for (const [n, { events, error, signed }] of outcomes.entries()) {
      const last = events[0]?.steps.at(-1);
      expect(events[0]?.steps.some(({ step }) => step === "plain")).toBe(false);
      if (error === undefined) {
        accepted++;
        expect(signed).toBe(true);
        expect(kindOf(n, events[0]?.accepted ?? "plain")).toBe("signed");
      } else {
        expect(error).toBeInstanceOf(ContractError);
        expect(last?.outcome === "late" ? "negotiation" : "signature").toBe((error as ContractError).code);
      }
    }
    expect(accepted).toBeGreaterThan(100);
    expect(accepted).toBeLessThan(400);
  }, 30_000);
});
