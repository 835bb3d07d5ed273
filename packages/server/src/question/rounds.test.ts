import { ProtocolError } from "@modelcontextprotocol/server";
import { openMemory } from "@tenon/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fuzz } from "../../test/fuzz.ts";
import type { Exchange } from "../handler/context.ts";
import { createAsking, type LinearContext } from "./asking.ts";
import { answerOnce, type Keeping } from "./rounds.ts";
import { createSeal } from "./seal.ts";

/** A handler as data: steps and questions, one after another or at once. */
type Op = "step" | "ask" | "pause" | { seq: Op[] } | { par: Op[] };

const { op } = fc.letrec<{ op: Op }>((tie) => ({
  op: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Op>("step", "ask", "ask", "pause"),
    fc.array(tie("op"), { minLength: 1, maxLength: 4 }).map((seq) => ({ seq })),
    fc.array(tie("op"), { minLength: 2, maxLength: 4 }).map((par) => ({ par })),
  ),
}));

/** What a client may do with a question it holds: answer well, in part, wrongly, not at all, twice at once, or be cut off. */
const action = fc.record({
  state: fc.nat(),
  kind: fc.constantFrom("all", "some", "wrong", "none", "same twice", "two answers", "cut"),
  mask: fc.nat(),
  salt: fc.nat(1),
});

interface Held {
  state: string;
  keys: string[];
  /** Which question a key is, from the message. */
  paths: Record<string, string>;
}

function keepingOf(): Keeping {
  return {
    seal: createSeal([], 3_600_000),
    store: openMemory().outcomes,
    log: () => undefined,
    questionTtlMs: 3_600_000,
    pageWaitMs: 0,
    spillBytes: 600,
  };
}

/** Runs one call of the program against any number of requests of its client. */
function play(program: Op) {
  const keeping = keepingOf();
  const effects: string[] = [];
  const stepKeys = new Map<string, Set<string>>();

  async function run(
    what: Op,
    path: string,
    ctx: LinearContext,
    out: Record<string, string>,
    cut: () => void,
  ): Promise<void> {
    if (what === "pause") return void (await new Promise((resolve) => setImmediate(resolve)));
    if (what === "step") {
      await ctx.step(path, async (id) => {
        stepKeys.set(path, (stepKeys.get(path) ?? new Set()).add(id));
        // some steps take longer than the question beside them
        if (path.endsWith("1")) await new Promise((resolve) => setImmediate(resolve));
        effects.push(path);
      });
      return cut();
    }
    if (what === "ask") {
      const answer = await ctx.elicit(path, [`${path}/0`, `${path}/1`]);
      out[path] = answer.action === "accept" ? answer.data : answer.action;
      return;
    }
    if ("seq" in what) {
      for (const [i, one] of what.seq.entries()) await run(one, `${path}.${i}`, ctx, out, cut);
      return;
    }
    await Promise.all(what.par.map((one, i) => run(one, `${path}.${i}`, ctx, out, cut)));
  }

  return {
    effects,
    stepKeys,
    async send(held: Held | undefined, inputResponses: Record<string, unknown>, cutOff = false) {
      const abort = new AbortController();
      const exchange = {
        era: "modern",
        signal: abort.signal,
        meta: {},
        caller: undefined,
        requestState: held?.state,
        inputResponses,
      } as unknown as Exchange; // all that a round looks at
      const out: Record<string, string> = {};
      return answerOnce(
        keeping,
        exchange,
        { method: "tools/call", name: "t", args: {} },
        async (linear) => {
          const pages = () => ({ open: () => Promise.reject(new Error()), completed: async () => undefined });
          const ctx = createAsking(linear, { era: "modern", capabilities: { elicitation: {} }, pages });
          await run(program, "p", ctx, out, () => {
            if (!cutOff) return;
            abort.abort();
            throw new Error("cut off");
          });
          return out;
        },
        {
          done: (value) => ({ value }),
          failed(error) {
            if (error instanceof ProtocolError) throw error;
            return { failed: String(error) };
          },
        },
      );
    },
  };
}

const count = (what: Op, kind: "step" | "ask"): number =>
  typeof what === "string"
    ? Number(what === kind)
    : ("seq" in what ? what.seq : what.par).reduce((sum, one) => sum + count(one, kind), 0);

describe("any handler, with any client", () => {
  it("has each effect once and never mixes answers up", { timeout: 240_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(op, fc.array(action, { maxLength: 12 }), async (program, actions) => {
        const game = play(program);
        const held: Held[] = [];
        const finished: Record<string, string>[] = [];
        const request = async (
          from: Held | undefined,
          answers: Record<string, unknown>,
          cutOff = false,
        ): Promise<void> => {
          try {
            const result = await game.send(from, answers, cutOff);
            if (result.resultType === "input_required") {
              const requests = result.inputRequests as Record<string, { params: { message: string } }>;
              const paths = Object.fromEntries(
                Object.entries(requests).map(([key, { params }]) => [key, params.message]),
              );
              held.push({ state: String(result.requestState), keys: Object.keys(requests), paths });
            } else if ("value" in result) finished.push(result.value as Record<string, string>);
            else if (!cutOff) throw new Error(String(result.failed));
          } catch (error) {
            if (!(error instanceof ProtocolError)) throw error;
            expect(error.data).toEqual({ reason: "answered" });
          }
        };
        const answered = ({ keys, paths }: Held, salt: number, mask = -1): Record<string, unknown> =>
          Object.fromEntries(
            keys
              .filter((_, i) => (mask >> (i % 30)) & 1)
              .map((key) => [key, { action: "accept", content: { value: `${paths[key]}/${salt}` } }]),
          );

        await request(undefined, {});
        for (const { state, kind, mask, salt } of actions) {
          const from = held[held.length - 1 - (state % held.length)];
          if (!from) break;
          const all = answered(from, salt);
          if (kind === "all") await request(from, all);
          if (kind === "some") await request(from, { ...answered(from, salt, mask), other: all });
          if (kind === "wrong") {
            const wrong = from.keys[mask % from.keys.length] ?? "";
            await request(from, { ...all, [wrong]: { action: "accept", content: { value: "p/9" } } });
          }
          if (kind === "none") await request(from, {});
          if (kind === "same twice") await Promise.all([request(from, all), request(from, all)]);
          if (kind === "two answers") await Promise.all([request(from, all), request(from, answered(from, 1 - salt))]);
          if (kind === "cut") await request(from, all, true);
        }
        // whatever happened so far, somebody holds a question that leads to the end
        for (let tries = 0; finished.length === 0 && tries < 60; tries++) {
          for (const from of [...held].reverse().slice(0, 8)) {
            for (const salt of [0, 1]) if (finished.length === 0) await request(from, answered(from, salt));
          }
        }

        expect(finished.length).toBeGreaterThan(0);
        expect(game.effects).toHaveLength(count(program, "step"));
        expect(new Set(game.effects).size).toBe(game.effects.length);
        for (const ids of game.stepKeys.values()) expect(ids.size).toBe(1);
        for (const out of finished) {
          expect(out).toEqual(finished[0]);
          expect(Object.keys(out)).toHaveLength(count(program, "ask"));
          for (const [path, data] of Object.entries(out)) expect([`${path}/0`, `${path}/1`]).toContain(data);
        }
      }),
      fuzz(150),
    );
  });
});
