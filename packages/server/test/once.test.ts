import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type OutcomeStore, openMemory, type Stores } from "@tenon/store";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { type Caller, createServer, type ServerOptions, type TenonServer, ToolError } from "../src/index.ts";
import { answering, ask, questions, type Reply, said, value } from "./ask.ts";

/** A bundle whose outcomes are these. */
const kept = (outcomes: OutcomeStore): Stores => ({ ...openMemory(), outcomes });
const replayed = (answer: Reply): unknown => answer.result?._meta?.["dev.tenon/replayed"];
const key = (): string => randomBytes(32).toString("base64url");
const caller = (subject: string): Caller => ({ subject, scopes: [], claims: {} });

let effects: string[];
let gate: Promise<void>;
let server: TenonServer;
const servers: TenonServer[] = [];

function make(options: Partial<ServerOptions> = {}): TenonServer {
  const made = createServer({ name: "once", version: "1.0.0", logSink: () => undefined, ...options });
  made.tool("pay", { input: z.object({ n: z.number() }) }, async ({ n }, ctx) => {
    const sure = await ctx.elicit("Sure?", z.boolean());
    if (sure.action !== "accept") return `not paid: ${sure.action}`;
    await gate;
    return ctx.step("pay", (id) => {
      effects.push(`pay ${n} ${sure.data}`);
      return { paid: n, id };
    });
  });
  made.tool("pair", {}, async (_, ctx) => {
    const [a, b, c] = await Promise.all([
      ctx.elicit("A?", z.string()),
      ctx.elicit(
        "B?",
        z.string().refine((text) => text !== "bad"),
      ),
      ctx.step("early", () => effects.push("early")),
    ]);
    const both = [a, b].map((answer) => (answer.action === "accept" ? answer.data : answer.action)).join("+");
    await ctx.step("late", () => effects.push(`late ${both}`));
    return `${both} ${c}`;
  });
  made.tool("keyed", { input: z.object({ n: z.number() }), idempotent: true }, async ({ n }, ctx) => {
    await gate;
    await ctx.step("first", () => effects.push(`first ${n}`));
    const sure = n > 10 ? await ctx.elicit("Sure?", z.boolean()) : undefined;
    if (n < 0) throw new ToolError("negative");
    return ctx.step("second", (id) => {
      effects.push(`second ${n}`);
      return { n, id, sure: sure?.action ?? null };
    });
  });
  made.tool("big", {}, async (_, ctx) => {
    const text = await ctx.step("load", () => "x".repeat(100_000));
    const sure = await ctx.elicit("Sure?", z.boolean());
    return `${text.length} ${sure.action}`;
  });
  servers.push(made);
  return made;
}

beforeEach(() => {
  effects = [];
  gate = Promise.resolve();
  server = make();
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((one) => one.close()));
});
const pay = { name: "pay", arguments: { n: 5 } };
const yes = { "Sure?": value(true) };
const no = { "Sure?": value(false) };

describe("an answered question", () => {
  it("gets the same outcome for the same retry, marked, and runs nothing again", async () => {
    const asked = await ask(server, "tools/call", pay);
    const first = await ask(server, "tools/call", { ...pay, ...answering(asked, yes) });
    expect(replayed(first)).toBeUndefined();
    const again = await ask(server, "tools/call", { ...pay, ...answering(asked, yes) });
    expect(replayed(again)).toBe(true);
    expect(said(again)).toBe(said(first));
    expect(effects).toEqual(["pay 5 true"]);
  });
  it("refuses another answer as answered", async () => {
    const asked = await ask(server, "tools/call", pay);
    await ask(server, "tools/call", { ...pay, ...answering(asked, yes) });
    const other = await ask(server, "tools/call", { ...pay, ...answering(asked, no) });
    expect(other.error).toMatchObject({ code: -32602, data: { reason: "answered" } });
    expect(effects).toEqual(["pay 5 true"]);
  });
  it("runs the handler once when the same retry comes twice at once: the second waits", async () => {
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const asked = await ask(server, "tools/call", pay);
    const both = [1, 2].map(() => ask(server, "tools/call", { ...pay, ...answering(asked, yes) }));
    await sleep(50);
    open();
    const answers = await Promise.all(both);
    expect(new Set(answers.map(said)).size).toBe(1);
    expect(answers.map(replayed).filter(Boolean)).toEqual([true]);
    expect(effects).toEqual(["pay 5 true"]);
  });
  it("lets one of two different answers win that come at once", async () => {
    const asked = await ask(server, "tools/call", pay);
    const answers = await Promise.all(
      [yes, no].map((script) => ask(server, "tools/call", { ...pay, ...answering(asked, script) })),
    );
    expect(answers.filter((answer) => answer.error?.data?.reason === "answered")).toHaveLength(1);
    expect(effects).toHaveLength(1);
  });
  it("is not consumed by a retry without an answer, with a wrong one, or with answers to something else", async () => {
    const asked = await ask(server, "tools/call", pay);
    for (const inputResponses of [
      undefined,
      {},
      { x: value(true) },
      answering(asked, { "Sure?": value("maybe") }).inputResponses,
    ]) {
      const again = await ask(server, "tools/call", {
        ...pay,
        requestState: asked.result?.requestState,
        inputResponses,
      });
      expect(questions(again)).toEqual(["Sure?"]);
    }
    const last = await ask(server, "tools/call", { ...pay, ...answering(asked, yes) });
    expect(JSON.parse(said(last))).toMatchObject({ paid: 5 });
  });
  it("has a declined outcome too", async () => {
    const asked = await ask(server, "tools/call", pay);
    const retry = { ...pay, ...answering(asked, { "Sure?": { action: "decline" } }) };
    expect(said(await ask(server, "tools/call", retry))).toBe("not paid: decline");
    expect(replayed(await ask(server, "tools/call", retry))).toBe(true);
  });
  it("can be answered again by whoever was cut off: the round goes on after its finished steps", async () => {
    const abort = new AbortController();
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    server.tool("cut", {}, async (_, ctx) => {
      await ctx.elicit("Sure?", z.boolean());
      await ctx.step("one", () => effects.push("one"));
      await gate;
      ctx.signal.throwIfAborted();
      return ctx.step("two", () => effects.push("two"));
    });
    const asked = await ask(server, "tools/call", { name: "cut" });
    const retry = { name: "cut", ...answering(asked, yes) };
    const cut = ask(server, "tools/call", retry, { signal: abort.signal }).catch(() => undefined);
    await sleep(50);
    abort.abort();
    open();
    await cut;
    expect(said(await ask(server, "tools/call", retry))).toBe("2");
    expect(effects).toEqual(["one", "two"]);
  });
});

describe("a store", () => {
  it("that gives the work to another process shuts the slow one out", async () => {
    const store = openMemory({ leaseMs: 60 }).outcomes;
    const stateKeys = [key()];
    // this process does not get to renew its lease, as if something blocked its event loop
    const takers: string[] = [];
    const telling =
      (name: string): OutcomeStore["claim"] =>
      async (request) => {
        const claim = await store.claim(request);
        if (claim.state === "yours") takers.push(name);
        return claim;
      };
    const slow = make({ stateKeys, store: kept({ ...store, renew: async () => false, claim: telling("slow") }) });
    const quick = make({ stateKeys, store: kept({ ...store, claim: telling("quick") }) });
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const asked = await ask(slow, "tools/call", pay);
    const retry = { ...pay, ...answering(asked, yes) };
    const late = ask(slow, "tools/call", retry);
    await expect.poll(() => takers).toEqual(["slow"]);
    const taken = ask(quick, "tools/call", retry);
    await expect.poll(() => takers).toEqual(["slow", "quick"]);
    open();
    expect(JSON.parse(said(await taken))).toMatchObject({ paid: 5 });
    expect((await late).error).toMatchObject({ code: -32603, data: { reason: "running" } });
    expect(effects).toEqual(["pay 5 true"]);
  });
  it("that cannot be reached is an internal error that tells nothing, and the question can be answered later", async () => {
    const store = openMemory().outcomes;
    let down = false;
    const flaky: OutcomeStore = {
      ...store,
      claim: (request) => (down ? Promise.reject(new Error("password=hunter2")) : store.claim(request)),
    };
    const one = make({ store: kept(flaky) });
    const asked = await ask(one, "tools/call", pay);
    down = true;
    const failed = await ask(one, "tools/call", { ...pay, ...answering(asked, yes) });
    expect(failed.error?.code).toBe(-32603);
    expect(failed.error?.message).toMatch(/^pay failed \(reference \w+\)$/);
    down = false;
    expect(JSON.parse(said(await ask(one, "tools/call", { ...pay, ...answering(asked, yes) })))).toMatchObject({
      paid: 5,
    });
  });
  it("that fails before the first effect consumes nothing", async () => {
    const store = openMemory().outcomes;
    let down = true;
    const flaky: OutcomeStore = {
      ...store,
      begin: (lease) => (down ? Promise.reject(new Error("password=hunter2")) : store.begin(lease)),
    };
    const one = make({ store: kept(flaky) });
    const asked = await ask(one, "tools/call", pay);
    const attempts = [
      () => ask(one, "tools/call", { ...pay, ...answering(asked, yes) }),
      () => ask(one, "tools/call", { name: "keyed", arguments: { n: 1 } }, { idempotencyKey: "k" }),
    ];
    for (const attempt of attempts) {
      down = true;
      expect((await attempt()).error?.message).toMatch(/^\w+ failed \(reference \w+\)$/);
      expect(effects).toEqual([]);
      down = false;
      expect((await attempt()).result?.isError).toBeUndefined();
      expect(effects.splice(0).length).toBeGreaterThan(0);
    }
  });
});

describe("a question whose time is over", () => {
  const pass = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1_000);
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());
  it("still has its outcome when it was answered in time: nobody is told to start again", async () => {
    const one = make({ questionTtlMs: 60_000 });
    const asked = await ask(one, "tools/call", pay);
    pass(50);
    const first = await ask(one, "tools/call", { ...pay, ...answering(asked, yes) });
    expect(said(first)).toContain("paid");
    pass(20); // the state's time is over, the outcome is kept from the answer on
    const again = await ask(one, "tools/call", { ...pay, ...answering(asked, yes) });
    expect([replayed(again), said(again)]).toEqual([true, said(first)]);
    for (const script of [no, {}]) {
      const other = await ask(one, "tools/call", { ...pay, ...answering(asked, script) });
      expect(other.error?.data?.reason).toBe("answered");
    }
    expect(effects).toEqual(["pay 5 true"]);
  });
  it("does not take effect again when the clock was wrong while it was answered", async () => {
    const one = make({ questionTtlMs: 60_000 });
    const asked = await ask(one, "tools/call", pay);
    pass(-3_500);
    await ask(one, "tools/call", { ...pay, ...answering(asked, yes) });
    pass(3_500);
    expect(replayed(await ask(one, "tools/call", { ...pay, ...answering(asked, yes) }))).toBe(true);
    expect(effects).toEqual(["pay 5 true"]);
  });
  it("is expired when it was not, with or without an answer", async () => {
    const one = make({ questionTtlMs: 60_000 });
    const asked = await ask(one, "tools/call", pay);
    pass(70);
    for (const script of [{}, yes, no, yes]) {
      const late = await ask(one, "tools/call", { ...pay, ...answering(asked, script) });
      expect(late.error).toMatchObject({ code: -32602, data: { reason: "expired" } });
    }
    expect(effects).toEqual([]);
  });
  it("is answered, not expired, when only what it had to remember is lost", async () => {
    const store = openMemory().outcomes;
    const lost = { from: false };
    const one = make({
      store: kept({ ...store, getBlob: (id) => (lost.from ? Promise.resolve(undefined) : store.getBlob(id)) }),
    });
    const asked = await ask(one, "tools/call", { name: "big" });
    expect(said(await ask(one, "tools/call", { name: "big", ...answering(asked, yes) }))).toBe("100000 accept");
    lost.from = true;
    const again = await ask(one, "tools/call", { name: "big", ...answering(asked, yes) });
    expect(again.error?.data?.reason).toBe("answered");
  });
});

describe("several questions of one round", () => {
  const all = { "A?": value("a"), "B?": value("b") };
  it("go out together with the step beside them, and count together", async () => {
    const asked = await ask(server, "tools/call", { name: "pair" });
    expect(questions(asked)).toEqual(["A?", "B?"]);
    expect(effects).toEqual(["early"]);
    expect(said(await ask(server, "tools/call", { name: "pair", ...answering(asked, all) }))).toBe("a+b 1");
    expect(effects).toEqual(["early", "late a+b"]);
  });
  it("ask only for what is missing or wrong, and nothing takes effect before all is right", async () => {
    const asked = await ask(server, "tools/call", { name: "pair" });
    const half = await ask(server, "tools/call", { name: "pair", ...answering(asked, { "A?": value("a") }) });
    expect(questions(half)).toEqual(["B?"]);
    const wrong = await ask(server, "tools/call", { name: "pair", ...answering(half, { "B?": value("bad") }) });
    expect(questions(wrong)).toEqual(["B?"]);
    expect(effects).toEqual(["early"]);
    const right = await ask(server, "tools/call", { name: "pair", ...answering(wrong, { "B?": value("b") }) });
    expect(said(right)).toBe("a+b 1");
    // the first state is the same question: the same answers are the same retry, others come too late
    const same = await ask(server, "tools/call", { name: "pair", ...answering(asked, all) });
    expect([replayed(same), said(same)]).toEqual([true, "a+b 1"]);
    const other = { ...all, "A?": value("z") };
    const late = await ask(server, "tools/call", { name: "pair", ...answering(asked, other) });
    expect(late.error?.data?.reason).toBe("answered");
    expect(effects).toEqual(["early", "late a+b"]);
  });
});

describe("states", () => {
  it("open under an old key of the ring, and are expired, not tampered, under none", async () => {
    const [old, fresh] = [key(), key()];
    const store = openMemory().outcomes;
    const asked = await ask(make({ stateKeys: [old], store: kept(store) }), "tools/call", pay);
    const retry = { ...pay, ...answering(asked, yes) };
    const rotated = await ask(make({ stateKeys: [fresh, old], store: kept(store) }), "tools/call", retry);
    expect(JSON.parse(said(rotated))).toMatchObject({ paid: 5 });
    const gone = await ask(make({ stateKeys: [fresh], store: kept(store) }), "tools/call", retry);
    expect(gone.error?.data?.reason).toBe("expired");
  });
  it("are refused when cut, changed, or brought by another caller", async () => {
    const asked = await ask(server, "tools/call", pay, { caller: caller("ann") });
    const state = String(asked.result?.requestState);
    for (const [requestState, reason] of [
      [state.slice(0, -4), "tampered"],
      [state.replace(/\.[^.]{8}/g, ".AAAAAAAA"), "tampered"],
      ["", "tampered"],
      [state, "foreign"],
    ]) {
      const refused = await ask(server, "tools/call", { ...pay, requestState }, { caller: caller("bob") });
      expect([refused.error?.code, refused.error?.data?.reason]).toEqual([-32602, reason]);
    }
  });
  it("stay small for a large journal, which lies in the store; a lost one is expired", async () => {
    const store = openMemory().outcomes;
    const stateKeys = [key()];
    const asked = await ask(make({ stateKeys, store: kept(store) }), "tools/call", { name: "big" });
    expect(String(asked.result?.requestState).length).toBeLessThan(1_000);
    const retry = { name: "big", ...answering(asked, yes) };
    expect(said(await ask(make({ stateKeys, store: kept(store) }), "tools/call", retry))).toBe("100000 accept");
    const lost = await ask(make({ stateKeys, store: openMemory() }), "tools/call", retry);
    expect(lost.error).toMatchObject({ code: -32602, data: { reason: "expired" } });
  });
  it("need a shared store and shared keys when there are replicas", () => {
    const shared: OutcomeStore = { ...openMemory().outcomes, shared: true };
    expect(() => make({ replicas: 3 })).toThrow(
      "a store they share, such as openPostgres({ url }) and the same stateKeys",
    );
    expect(() => make({ replicas: true, store: kept(shared) })).toThrow("replicas need the same stateKeys");
    expect(() => make({ replicas: true, store: openMemory(), stateKeys: [key()] })).toThrow("a store they share");
    expect(make({ replicas: true, store: kept(shared), stateKeys: [key()] }).name).toBe("once");
    expect(make({ replicas: 1 }).name).toBe("once");
  });
});

describe("an idempotent tool", () => {
  const keyed = (n: number) => ({ name: "keyed", arguments: { n } });
  it("runs once per key and caller", async () => {
    const first = await ask(server, "tools/call", keyed(1), { idempotencyKey: "k" });
    const again = await ask(server, "tools/call", keyed(1), { idempotencyKey: "k" });
    expect([replayed(first), replayed(again)]).toEqual([undefined, true]);
    expect(said(again)).toBe(said(first));
    expect(effects).toEqual(["first 1", "second 1"]);
    await ask(server, "tools/call", keyed(1), { idempotencyKey: "k", caller: caller("ann") });
    await ask(server, "tools/call", keyed(1), { idempotencyKey: "k2" });
    await ask(server, "tools/call", keyed(1));
    expect(effects).toHaveLength(8);
  });
  it("waits for a call of the same key that runs", async () => {
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const both = [1, 2].map(() => ask(server, "tools/call", keyed(2), { idempotencyKey: "w" }));
    await sleep(30);
    open();
    expect(new Set((await Promise.all(both)).map(said)).size).toBe(1);
    expect(effects).toEqual(["first 2", "second 2"]);
  });
  it("means the whole call by its key, questions included", async () => {
    const asked = await ask(server, "tools/call", keyed(20), { idempotencyKey: "q" });
    const repeated = await ask(server, "tools/call", keyed(20), { idempotencyKey: "q" });
    expect(repeated.result?.requestState).toBe(asked.result?.requestState);
    const done = await ask(
      server,
      "tools/call",
      { ...keyed(20), ...answering(repeated, yes) },
      { idempotencyKey: "q" },
    );
    const later = await ask(server, "tools/call", keyed(20), { idempotencyKey: "q" });
    expect([replayed(later), said(later)]).toEqual([true, said(done)]);
    expect(effects).toEqual(["first 20", "second 20"]);
  });
  it("refuses a key with other arguments, and keys that are none", async () => {
    await ask(server, "tools/call", keyed(1), { idempotencyKey: "a" });
    const other = await ask(server, "tools/call", keyed(2), { idempotencyKey: "a" });
    expect(other.error).toMatchObject({ code: -32602, data: { reason: "answered" } });
    for (const idempotencyKey of ["", "x".repeat(257)]) {
      expect((await ask(server, "tools/call", keyed(1), { idempotencyKey })).error?.code).toBe(-32602);
    }
  });
  it("goes on after its finished steps when its first try was cut off", async () => {
    const abort = new AbortController();
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    server.tool("cut", { idempotent: true }, async (_, ctx) => {
      await ctx.step("one", () => effects.push("one"));
      await gate;
      ctx.signal.throwIfAborted();
      return ctx.step("two", () => effects.push("two"));
    });
    const cut = ask(server, "tools/call", { name: "cut" }, { idempotencyKey: "c", signal: abort.signal });
    cut.catch(() => undefined);
    await sleep(50);
    abort.abort();
    open();
    await cut.catch(() => undefined);
    expect(said(await ask(server, "tools/call", { name: "cut" }, { idempotencyKey: "c" }))).toBe("2");
    expect(effects).toEqual(["one", "two"]);
  });
  it("repeats an error of the tool as well", async () => {
    for (const mark of [undefined, true]) {
      const failed = await ask(server, "tools/call", keyed(-1), { idempotencyKey: "e" });
      expect([failed.result?.isError, said(failed), replayed(failed)]).toEqual([true, "negative", mark]);
    }
    expect(effects).toEqual(["first -1"]);
  });
  it("gives the steps of two calls different idempotency keys, and those of one call the same", async () => {
    const ids = await Promise.all(
      ["x", "y", undefined, undefined].map(async (idempotencyKey) => {
        const done = await ask(server, "tools/call", keyed(3), idempotencyKey ? { idempotencyKey } : {});
        return (JSON.parse(said(done)) as { id: string }).id;
      }),
    );
    expect(new Set(ids).size).toBe(4);
  });
});
