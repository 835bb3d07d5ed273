import { setTimeout as sleep } from "node:timers/promises";
import { openMemory } from "@tenon/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type TenonServer, type ToolContext } from "../src/index.ts";
import { value } from "./ask.ts";
import { fuzz } from "./fuzz.ts";
import { begin, ended, look, request, said } from "./tasks.ts";

/** A handler as data: steps, questions and reports, one after another or at once. */
type Op = "step" | "ask" | "pause" | { seq: Op[] } | { par: Op[] };

const { op } = fc.letrec<{ op: Op }>((tie) => ({
  op: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Op>("step", "step", "ask", "pause"),
    fc.array(tie("op"), { minLength: 1, maxLength: 4 }).map((seq) => ({ seq })),
    fc.array(tie("op"), { minLength: 2, maxLength: 4 }).map((par) => ({ par })),
  ),
}));

/** What may happen while a task runs: its process stops, somebody answers well, in part or wrongly. */
const event = fc.record({
  kind: fc.constantFrom("restart", "answer", "answer some", "answer wrongly", "wait"),
  mask: fc.nat(),
});

/** Where a question stands in the program is its answer, so that a mix-up shows. */
async function run(what: Op, path: string, ctx: ToolContext, effects: string[]): Promise<string> {
  if (what === "pause") {
    await sleep(2, undefined, { signal: ctx.signal });
    return "";
  }
  if (what === "step") {
    return ctx.step(path, (key) => {
      effects.push(`${path} ${key}`);
      return `s${path};`;
    });
  }
  if (what === "ask") {
    const answer = await ctx.elicit(
      path,
      z.string().refine((text) => text !== "wrong"),
    );
    return answer.action === "accept" ? `a${answer.data};` : answer.action;
  }
  if ("seq" in what) {
    let all = "";
    for (const [i, part] of what.seq.entries()) all += await run(part, `${path}.${i}`, ctx, effects);
    return all;
  }
  return (await Promise.all(what.par.map((part, i) => run(part, `${path}.${i}`, ctx, effects)))).join("");
}

/** What it returns, and the steps it takes. */
function expected(what: Op, path: string): { text: string; steps: string[] } {
  if (what === "pause") return { text: "", steps: [] };
  if (what === "step") return { text: `s${path};`, steps: [path] };
  if (what === "ask") return { text: `a${path};`, steps: [] };
  const parts = ("seq" in what ? what.seq : what.par).map((part, i) => expected(part, `${path}.${i}`));
  return { text: parts.map(({ text }) => text).join(""), steps: parts.flatMap(({ steps }) => steps) };
}

describe("a task", () => {
  it("does each step once and mixes up no answer, whatever happens to its processes and however it is answered", async () => {
    const property = fc.asyncProperty(op, fc.array(event, { maxLength: 12 }), async (program, events) => {
      const stores = openMemory();
      const effects: string[] = [];
      const start = (): TenonServer =>
        createServer({ name: "p", version: "1", store: stores, logSink: () => undefined }).tool(
          "program",
          { task: "required" },
          (_, ctx) => run(program, "0", ctx, effects),
        );
      let server = start();
      const { taskId } = await begin(server, "program");
      const answerWith = async (how: string, mask: number): Promise<void> => {
        const { inputRequests = {} } = await look(server, taskId);
        const open = Object.entries(inputRequests).filter((_, i) => how !== "answer some" || ((mask >> i) & 1) === 1);
        const inputResponses = Object.fromEntries(
          open.map(([key, { params }]) => [key, value(how === "answer wrongly" ? "wrong" : params.message)]),
        );
        await request(server, "tasks/update", { taskId, inputResponses });
      };
      for (const { kind, mask } of events) {
        if (kind === "wait") await sleep(mask % 5);
        else if (kind !== "restart") await answerWith(kind, mask);
        else {
          const before = server;
          server = start();
          await Promise.all([before.close(), look(server, taskId)]);
        }
      }
      let task = await look(server, taskId);
      for (const late = Date.now() + 20_000; !ended(task) && Date.now() < late; task = await look(server, taskId)) {
        await answerWith("answer", 0);
        await sleep(3);
      }
      const { text, steps } = expected(program, "0");
      expect(task.status).toBe("completed");
      expect(said(task)).toBe(text);
      expect(effects.map((effect) => effect.split(" ")[0]).sort()).toEqual(steps.sort());
      await server.close();
      await stores.close();
    });
    await fc.assert(property, fuzz(40));
  }, 120_000);
});
