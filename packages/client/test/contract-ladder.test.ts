import { createHash } from "node:crypto";
import { setMaxListeners } from "node:events";
import { ContractError, META } from "@tenon/core";
import { createKeyRing, newContractKey } from "@tenon/core/contract";
import { describe, expect, it } from "vitest";
import type { ConnectionHooks } from "../src/connection/connection.ts";
import { openConnection } from "../src/connection/open.ts";
import { Pools } from "../src/connection/pool.ts";
import type { ContractEvent, ContractWay, ServerContract } from "../src/index.ts";
import { createPeerAnswers } from "../src/question/peer-requests.ts";
import { closeAfterEach, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

const WAYS: readonly ContractWay[] = ["0.4.2", "0.4.2 without expires_at", "0.4.1", "plain"];
const DELAY_MS = 1_200;
const LATE = 0.12;
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

describe("a server that is often late with its answer", () => {
  it("is agreed with in all but one of a thousand negotiations, and each step is told", async () => {
    const version = { "0.4.2": "0.4.2", "0.4.2 without expires_at": "0.4.2", "0.4.1": "0.4.1" } as const;
    const server = await flaky((_, way) => (way === "plain" ? undefined : { ...base, version: version[way] }));
    const outcomes = await negotiate(server.url, 5_000, {});
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
  }, 150_000);

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
