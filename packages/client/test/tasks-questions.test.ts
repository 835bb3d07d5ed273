import { ProtocolError } from "@tenon/core";
import { describe, expect, it } from "vitest";
import {
  type CallDriver,
  type ElicitationHandler,
  type ElicitationRequest,
  type Leg,
  renderText,
  type ToolCallOutcome,
  type WireResult,
} from "../src/index.ts";
import { closeAfterEach, connect } from "./stub/index.ts";
import { taskServers } from "./tasks-scene.ts";

closeAfterEach();
const scene = taskServers();

const yes = { action: "accept" as const, content: { ok: true } };
const said = (outcome: ToolCallOutcome) => JSON.parse(renderText(outcome.content)) as { answers: unknown };
const s = () => ({ s: { url: scene.url } });
const updates = () => scene.kept().log.flatMap(({ answers }) => (answers ? [answers] : []));
const url = (address: string) => ({
  method: "elicitation/create",
  params: { mode: "url", message: "Sign here", url: address, elicitationId: "e1" },
});

describe("a question of a task", () => {
  it("goes to the handler, and its answer to the task", async () => {
    const asked: [ElicitationRequest, unknown][] = [];
    const told: ElicitationRequest[] = [];
    const client = connect(s(), {
      events: { onElicitation: (question) => told.push(question) },
      elicitation: (question, { signal: _signal, ...source }) => {
        asked.push([question, source]);
        return yes;
      },
    });
    expect(said(await client.callTool("s", "work", { ask: ["pay"] })).answers).toEqual({ pay: yes });
    expect(asked).toEqual([
      [
        expect.objectContaining({ mode: "form", message: "pay?", fields: [expect.objectContaining({ name: "ok" })] }),
        { server: "s", tool: "work", callId: expect.stringMatching(/^call-/), taskId: expect.any(String) },
      ],
    ]);
    expect(told).toHaveLength(1);
    expect(updates()).toEqual([{ pay: yes }]);
  });

  it("is asked again with what is wrong where an answer does not fit", async () => {
    const given = [{ action: "accept" as const, content: { ok: "perhaps" } }, yes];
    const problems: unknown[] = [];
    const client = connect(s(), {
      elicitation: (question) => {
        problems.push(question.problems?.map(({ field }) => field));
        return given[problems.length - 1] ?? yes;
      },
    });
    await client.callTool("s", "work", { ask: ["pay"] });
    expect(problems).toEqual([undefined, ["ok"]]);
    expect(updates()).toEqual([{ pay: yes }]);
  });

  it("is answered one by one where there are several: each answer leaves as it comes", async () => {
    const order: string[] = [];
    const client = connect(s(), {
      elicitation: ({ message }) => {
        order.push(`${message} after ${updates().length}`);
        return message === "b?" ? { action: "decline" } : yes;
      },
    });
    const { answers } = said(await client.callTool("s", "work", { ask: ["a", "b", "c"] }));
    expect(answers).toEqual({ a: yes, b: { action: "decline" }, c: yes });
    expect(order).toEqual(["a? after 0", "b? after 1", "c? after 2"]);
  });

  it("is not asked twice although the server still shows it for a while", async () => {
    let asked = 0;
    const client = connect(s(), {
      elicitation: () => {
        asked += 1;
        return yes;
      },
    });
    await client.callTool("s", "work", { ask: ["a"], staleMs: 600 });
    expect(asked).toBe(1);
    expect(updates()).toHaveLength(1);
  });

  it("may follow on another, but not for ever", async () => {
    const client = connect(s(), { elicitation: () => yes });
    const ask = ["a", "b", "c"];
    const task = { maxRounds: 3 };
    expect(said(await client.callTool("s", "work", { ask, inTurn: true }, { task })).answers).toMatchObject({ c: yes });
    const endless = client.callTool("s", "work", { ask, inTurn: true }, { task: { maxRounds: 2 } });
    await expect(endless).rejects.toMatchObject({ code: "too_many_rounds", maybeExecuted: true });
    const many = Array.from({ length: 12 }, (_, n) => `q${n}`);
    await expect(client.callTool("s", "work", { ask: many, inTurn: true })).rejects.toMatchObject({
      code: "too_many_rounds",
      message: expect.stringContaining("10 rounds"),
    });
  });

  it("that sends a person to a page is checked like any other", async () => {
    const asked: ElicitationRequest[] = [];
    const elicitation: ElicitationHandler = (question) => {
      asked.push(question);
      return { action: "accept" };
    };
    const good = { ask: ["sign"], requests: { sign: url("https://sign.example/1") } };
    const client = connect({ s: { url: scene.url, expectHosts: ["sign.example"] } }, { elicitation });
    expect(said(await client.callTool("s", "work", good)).answers).toEqual({ sign: { action: "accept" } });
    expect(asked[0]).toMatchObject({ mode: "url", url: "https://sign.example/1" });
    const bad = { ask: ["sign"], requests: { sign: url("https://evil.example/1") } };
    await expect(client.callTool("s", "work", bad)).rejects.toMatchObject({
      code: "unexpected_host",
      data: { taskId: expect.any(String) },
    });
    expect(asked).toHaveLength(1);
  });

  it("to a model, or for the roots, is answered by those who answer them", async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Hello" } }];
    const requests = {
      model: { method: "sampling/createMessage", params: { messages, maxTokens: 10 } },
      where: { method: "roots/list" },
    };
    const answer = { role: "assistant" as const, model: "m", content: { type: "text" as const, text: "Hi" } };
    const client = connect(s(), { sampling: () => answer, roots: [{ uri: "file:///srv" }], elicitation: () => yes });
    const { answers } = said(await client.callTool("s", "work", { ask: ["model", "where", "sure"], requests }));
    expect(answers).toEqual({ model: answer, where: { roots: [{ uri: "file:///srv" }] }, sure: yes });
  });

  it("is taken back when somebody else answered it", async () => {
    let signal: AbortSignal | undefined;
    const client = connect(s(), {
      elicitation: (_, source) => {
        signal = source.signal;
        return new Promise(() => {}); // nobody is there
      },
    });
    const call = client.callTool("s", "work", { ask: ["a"] });
    await scene.until(() => signal !== undefined);
    const [id = ""] = Object.keys(scene.kept().tasks);
    expect(await connect(s(), { elicitation: () => yes }).tasks.answer("s", id, { a: yes })).toEqual(["a"]);
    expect(said(await call).answers).toEqual({ a: yes });
    expect(signal?.aborted).toBe(true);
  });

  it("does not count as time of the task", async () => {
    const client = connect(s(), {
      elicitation: async () => {
        await new Promise((resolve) => setTimeout(resolve, 900));
        return yes;
      },
    });
    const outcome = await client.callTool("s", "work", { ask: ["a"] }, { task: { totalMs: 800 } });
    expect(said(outcome).answers).toEqual({ a: yes });
  });

  it("without anybody to answer it ends the call, with the id of the task", async () => {
    const failed = connect(s()).callTool("s", "work", { ask: ["a"] });
    await expect(failed).rejects.toMatchObject({ code: "no_answerer", data: { taskId: expect.any(String) } });
  });
});

describe("a driver", () => {
  /** Remembers legs as JSON, as another process would find them; suspends where it knows no answer. */
  function driver(memo: Map<string, string>, answers: Record<number, Record<string, typeof yes>>) {
    const legs: Leg[] = [];
    const own: CallDriver = {
      leg: async (send, leg) => {
        legs.push(leg);
        const known = memo.get(`${leg.round}`);
        if (known) return JSON.parse(known) as WireResult;
        const result = await send();
        memo.set(`${leg.round}`, JSON.stringify(result));
        return result;
      },
      answer: async (_, leg) => {
        const answer = answers[leg.round];
        if (!answer) throw new Error(`suspended at ${leg.round}`);
        return answer;
      },
    };
    return { legs, own };
  }

  it("carries the task over restarts: leg by leg, some answers first, then the others", async () => {
    const memo = new Map<string, string>();
    const args = { ask: ["a", "b"], label: "carried" };
    const run = (answers: Record<number, Record<string, typeof yes>>) =>
      connect(s(), { elicitation: "interrupt" }).callTool("s", "work", args, { driver: driver(memo, answers).own });
    await expect(run({})).rejects.toThrow("suspended at 1");
    await expect(run({ 1: { a: yes } })).rejects.toThrow("suspended at 2");
    expect(updates()).toEqual([{ a: yes }]);
    expect(said(await run({ 1: { a: yes }, 2: { b: yes } }))).toEqual({ done: "carried", answers: { a: yes, b: yes } });
    expect(updates()).toEqual([{ a: yes }, { b: yes }]);
    expect(scene.count("tools/call")).toBe(1);
    // what was found is found again without asking anybody
    const looks = scene.count("tasks/get");
    await run({ 1: { a: yes }, 2: { b: yes } });
    expect(scene.count("tasks/get")).toBe(looks);
  });

  it("is told which legs follow a task", async () => {
    const { legs, own } = driver(new Map(), { 1: { a: yes } });
    await connect(s(), { elicitation: "interrupt" }).callTool("s", "work", { ask: ["a"] }, { driver: own });
    const [id] = Object.keys(scene.kept().tasks);
    expect(legs.map(({ round, task }) => [round, task])).toEqual([
      [0, undefined],
      [1, id],
      [2, id],
    ]);
  });

  it("that gives no answer at all is told so", async () => {
    const { own } = driver(new Map(), { 1: {} });
    const failed = connect(s(), { elicitation: "interrupt" }).callTool("s", "work", { ask: ["a"] }, { driver: own });
    await expect(failed).rejects.toBeInstanceOf(ProtocolError);
    await expect(failed).rejects.toMatchObject({ code: "invalid_answer" });
  });

  it("that only remembers leaves questions to the handler", async () => {
    const memo = new Map<string, string>();
    let asked = 0;
    const run = () => {
      const { answer: _none, ...own } = driver(memo, {}).own;
      const elicitation = () => {
        asked += 1;
        return yes;
      };
      return connect(s(), { elicitation }).callTool("s", "work", { ask: ["a"] }, { driver: own });
    };
    expect(said(await run()).answers).toEqual({ a: yes });
    expect(said(await run()).answers).toEqual({ a: yes });
    expect(asked).toBe(1);
    expect(scene.count("tools/call")).toBe(1);
  });

  it("may have a task go on although the call is aborted", async () => {
    const { own } = driver(new Map(), {});
    const unwanted = new AbortController();
    const call = connect(s(), { elicitation: "interrupt" }).callTool(
      "s",
      "work",
      { ms: 5_000 },
      { driver: { ...own, leavesTask: (reason) => reason === "taken over" }, signal: unwanted.signal },
    );
    await scene.until(() => scene.count("tasks/get") > 0);
    unwanted.abort("taken over");
    await expect(call).rejects.toMatchObject({ code: "cancelled" });
    expect(scene.count("tasks/cancel")).toBe(0);
  });
});
