import { setTimeout as sleep } from "node:timers/promises";
import { openMemory } from "@tenon/store";
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { type Caller, createServer, isSuspension, type ServerOptions, type TenonServer } from "../src/index.ts";
import { type Asking, answering, ask, questions, type Reply, said, value } from "./ask.ts";
import { connect } from "./servers.ts";

const ann: Caller = { subject: "ann", scopes: [], claims: {} };
const accept = { action: "accept" };
let effects: string[];
let server: TenonServer;
const make = (options: Partial<ServerOptions> = {}): TenonServer =>
  createServer({ name: "asks", version: "1.0.0", exposeErrors: true, logSink: () => undefined, ...options });
const call = (name: string, more: object = {}, options: Asking = {}): Promise<Reply> =>
  ask(server, "tools/call", { name, ...more }, options);

beforeEach(() => {
  effects = [];
  server = make({ pageWaitMs: 300 });
});
afterEach(() => server.close());

describe("a handler's mistake is said at once, before anybody is asked", () => {
  it("two questions under one key", async () => {
    server.tool("beside", {}, (_, ctx) =>
      Promise.all(["A?", "B?"].map((message) => ctx.elicit(message, z.string(), { key: "same" }))),
    );
    server.tool("again", {}, async (_, ctx) => {
      const guests = [];
      for (const _guest of [1, 2]) guests.push(await ctx.elicit("Name of the guest?", z.string(), { key: "guest" }));
      return guests;
    });
    expect(said(await call("beside"))).toContain('The question key "same" was used twice in one run');
    // one after the other: the second must not get the first one's answer
    const asked = await call("again");
    const answered = await call("again", answering(asked, { "Name of the guest?": value("Ann") }));
    expect(said(answered)).toContain('The question key "guest" was used twice in one run');
  });
  it("a step that asks, since it would take effect again", async () => {
    server.tool("t", {}, async (_, ctx) =>
      ctx.step("charge", async () => {
        effects.push("charged");
        return (await ctx.elicit("Sure?", z.boolean())).action;
      }),
    );
    const reply = await call("t");
    expect(said(reply)).toContain('ctx.step: the function of "charge" asks a question');
    expect(reply.result?.requestState).toBeUndefined();
    expect(effects).toEqual(["charged"]);
  });
  it("a shape that cannot be asked for, beside one that can", async () => {
    const where = z.object({ place: z.object({ street: z.string() }) });
    server.tool("t", {}, (_, ctx) => ctx.elicitAll({ size: ["S", "M"], where }));
    expect(said(await call("t"))).toContain('the field "place" is a object that a form cannot ask for');
  });
});

describe("a step that throws", () => {
  it("may be tried again in the same run, with the same idempotency key", async () => {
    const keys: string[] = [];
    server.tool("t", {}, async (_, ctx) => {
      const pay = (): Promise<string> =>
        ctx.step("pay", (id) => {
          keys.push(id);
          if (keys.length === 1) throw new Error("the bank did not answer");
          return "paid";
        });
      return pay().catch(pay);
    });
    expect(said(await call("t"))).toBe("paid");
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });
});

describe("an accepted answer that is not valid any more", () => {
  it("is asked again, and the new answer counts", async () => {
    const taken = new Set<string>();
    const free = z.string().refine((name) => !taken.has(name));
    server.tool("t", {}, async (_, ctx) => {
      const name = await ctx.elicit("Name?", free);
      const sure = await ctx.elicit("Sure?", z.boolean());
      return `${name.action === "accept" ? name.data : name.action} ${sure.action}`;
    });
    let asked = await call("t");
    asked = await call("t", answering(asked, { "Name?": value("ann") }));
    expect(questions(asked)).toEqual(["Sure?"]);
    taken.add("ann");
    asked = await call("t", answering(asked, { "Sure?": value(true) }));
    expect(questions(asked)).toEqual(["Name?"]);
    asked = await call("t", answering(asked, { "Name?": value("bob") }));
    const last = asked.result?.requestState ? await call("t", answering(asked, { "Sure?": value(true) })) : asked;
    expect(said(last)).toBe("bob accept");
  });
});

describe("a suspended handler", () => {
  it("cannot do anything more through its context", async () => {
    const seen: unknown[] = [];
    server.tool("t", {}, async (_, ctx) => {
      try {
        await ctx.elicit("First?", z.string());
      } catch (error) {
        for (const more of [() => ctx.step("s", () => effects.push("s")), () => ctx.elicit("Other?", z.string())]) {
          seen.push(await more().catch(isSuspension));
        }
        throw error;
      }
      return "done";
    });
    expect(questions(await call("t"))).toEqual(["First?"]);
    expect([seen, effects]).toEqual([[true, true], []]);
  });
  it("runs its finally, and is not waited for when it never ends", async () => {
    server.tool("cleans", {}, async (_, ctx) => {
      try {
        await ctx.elicit("First?", z.string());
      } finally {
        await sleep(20);
        effects.push("cleaned");
      }
    });
    server.tool("hangs", {}, async (_, ctx) => {
      await Promise.allSettled([ctx.elicit("First?", z.string()), new Promise(() => undefined)]);
    });
    expect(questions(await call("cleans"))).toEqual(["First?"]);
    expect(effects).toEqual(["cleaned"]);
    expect(questions(await call("hangs"))).toEqual(["First?"]);
  });
  it("waits for the steps that run beside the question", async () => {
    server.tool("t", {}, async (_, ctx) => {
      const [answer] = await Promise.all([
        ctx.elicit("First?", z.string()),
        ctx.step("slow", async () => {
          await sleep(30);
          effects.push("slow");
        }),
      ]);
      return answer.action;
    });
    const asked = await call("t");
    expect(effects).toEqual(["slow"]);
    expect(said(await call("t", answering(asked, { "First?": value("x") })))).toBe("accept");
    expect(effects).toEqual(["slow"]);
  });
  it("is not heard any more after its call was answered", async () => {
    let late: Promise<unknown> = Promise.resolve();
    server.tool("t", {}, async (_, ctx) => {
      late = sleep(30).then(() => ctx.step("late", () => effects.push("late")));
      late.catch(() => undefined);
      return "done";
    });
    expect(said(await call("t"))).toBe("done");
    await expect(late).rejects.toMatchObject({ code: "call_ended" });
    expect(effects).toEqual([]);
  });
  it("survives a question that it awaits later", async () => {
    server.tool("t", {}, async (_, ctx) => {
      const question = ctx.elicit("First?", z.string());
      await sleep(5);
      return (await question).action;
    });
    expect(said(await call("t", answering(await call("t"), { "First?": value("x") })))).toBe("accept");
  });
});

describe("elicitAll", () => {
  it("asks everything in one round and returns the answers by name", async () => {
    server.tool("t", {}, (_, ctx) =>
      ctx.elicitAll({
        size: ["S", "M"],
        gift: { message: "Gift wrap?", shape: z.boolean() },
        colour: { message: "Red", shape: "Round" },
      }),
    );
    const asked = await call("t");
    expect(questions(asked)).toEqual(["size", "Gift wrap?", "colour"]);
    const script = { size: value("M"), "Gift wrap?": { action: "decline" }, colour: value("shape") };
    expect(JSON.parse(said(await call("t", answering(asked, script))))).toEqual({
      size: { action: "accept", data: "M" },
      gift: { action: "decline" },
      colour: { action: "accept", data: "shape" },
    });
  });
});

describe("the types of answers", () => {
  it("follow the questions", async () => {
    server.tool("t", {}, async (_, ctx) => {
      const { size, gift, who, colour } = await ctx.elicitAll({
        size: ["S", "M"],
        gift: { message: "Gift wrap?", shape: z.boolean() },
        who: z.object({ first: z.string() }),
        colour: { message: "Red", shape: "Round" },
      });
      if (size.action === "accept") expectTypeOf(size.data).toEqualTypeOf<"S" | "M">();
      if (gift.action === "accept") expectTypeOf(gift.data).toEqualTypeOf<boolean>();
      if (who.action === "accept") expectTypeOf(who.data).toEqualTypeOf<{ first: string }>();
      if (colour.action === "accept") expectTypeOf(colour.data).toEqualTypeOf<"message" | "shape">();
      return "typed";
    });
    expect(questions(await call("t"))).toHaveLength(4);
  });
});

describe("elicitUrl", () => {
  const ids: string[] = [];
  beforeEach(() => {
    ids.length = 0;
    server.tool("bank", {}, async (_, ctx) => {
      const answer = await ctx.elicitUrl("Sign in to the bank", (id) => {
        ids.push(id);
        return `https://bank.example/start?id=${id}`;
      });
      return answer;
    });
  });
  const went = { "Sign in to the bank": accept };

  it("waits until the page reports the end, with the same address in every round", async () => {
    const asked = await call("bank", {}, { caller: ann });
    const [request] = Object.values(asked.result?.inputRequests ?? {});
    expect(request).toEqual({
      method: "elicitation/create",
      params: { mode: "url", message: "Sign in to the bank", url: `https://bank.example/start?id=${ids[0]}` },
    });
    const again = await call("bank", answering(asked, went), { caller: ann });
    expect(Object.values(again.result?.inputRequests ?? {})).toEqual([request]);
    const waiting = call("bank", answering(again, went), { caller: ann });
    await server.completeElicitation(String(ids[0]), { subject: "ann", data: { account: 7 } });
    expect(JSON.parse(said(await waiting))).toEqual({ action: "accept", data: { account: 7 } });
    expect(new Set(ids).size).toBe(1);
  });
  it("is done by the person who was asked, and only for questions that were asked", async () => {
    await call("bank", {}, { caller: ann });
    const id = String(ids[0]);
    await expect(server.completeElicitation(id, { subject: "bob" })).rejects.toMatchObject({
      code: "foreign_elicitation",
    });
    await expect(server.completeElicitation(id)).rejects.toMatchObject({ code: "foreign_elicitation" });
    await expect(server.completeElicitation("nothing")).rejects.toMatchObject({ code: "unknown_elicitation" });
  });
  it("is not done by a namesake of another issuer", async () => {
    const issuer = "https://login.example";
    await call("bank", {}, { caller: { ...ann, issuer } });
    const id = String(ids[0]);
    const elsewhere = server.completeElicitation(id, { subject: "ann", issuer: "https://other.example" });
    await expect(elsewhere).rejects.toMatchObject({ code: "foreign_elicitation" });
    await server.completeElicitation(id, { subject: "ann", issuer });
    // what was reported stays that person's
    await expect(server.completeElicitation(id, { subject: "ann", issuer })).resolves.toBeUndefined();
    await expect(
      server.completeElicitation(id, { subject: "ann", issuer: "https://other.example" }),
    ).rejects.toMatchObject({ code: "foreign_elicitation" });
  });
  it("must say the issuer where tokens of several are taken", async () => {
    const issuers = ["https://login.example", "https://other.example"];
    const verify = () => Promise.reject(new Error("nobody comes with a token here"));
    const auth = { issuers, resource: undefined, requiredScopes: [], scopesSupported: [], verify };
    const several = make({ auth });
    several.tool("bank", {}, (_, ctx) =>
      ctx.elicitUrl("Sign in", (id) => {
        ids.push(id);
        return `https://bank.example/start?id=${id}`;
      }),
    );
    const caller: Caller = { ...ann, issuer: "https://login.example" };
    await ask(several, "tools/call", { name: "bank" }, { caller });
    const id = String(ids[0]);
    await expect(several.completeElicitation(id, { subject: "ann" })).rejects.toMatchObject({
      code: "foreign_elicitation",
    });
    await several.completeElicitation(id, { subject: "ann", issuer: "https://login.example" });
    await several.close();
  });
  it("may be declined", async () => {
    const asked = await call("bank");
    const declined = await call("bank", answering(asked, { "Sign in to the bank": { action: "decline" } }));
    expect(JSON.parse(said(declined))).toEqual({ action: "decline" });
  });
  it.each([
    ["http://bank.example/start", "neither https nor http on this machine"],
    ["https://ann:pw@bank.example/", "carries a user or a password"],
    ["javascript:alert(1)", "neither https nor http"],
    ["/start", "is not an absolute URL"],
  ])("refuses %s", async (url, why) => {
    server.tool("bad", {}, (_, ctx) => ctx.elicitUrl("Go", url));
    expect(said(await call("bad"))).toContain(why);
  });
  it("takes http on this machine", async () => {
    server.tool("local", {}, (_, ctx) => ctx.elicitUrl("Go", new URL("http://127.0.0.1:8080/x")));
    expect(questions(await call("local"))).toEqual(["Go"]);
  });
  it("works on the legacy era, where the client is told when the page is done", async () => {
    const { url } = await server.listen({ port: 0 });
    const client = await connect(url, "legacy", { capabilities: { elicitation: { url: {} } } });
    const told: string[] = [];
    client.setNotificationHandler("notifications/elicitation/complete", ({ params }) => {
      told.push(params.elicitationId);
    });
    client.setRequestHandler("elicitation/create", ({ params }) => {
      const id = "elicitationId" in params ? String(params.elicitationId) : "";
      setTimeout(() => void server.completeElicitation(id, { data: "ok" }), 20);
      return { action: "accept" };
    });
    const result = (await client.callTool({ name: "bank" })) as { content: { text: string }[] };
    expect(JSON.parse(result.content[0]?.text ?? "")).toEqual({ action: "accept", data: "ok" });
    expect(told).toEqual([ids[0]]);
    await client.close();
  });
});

describe("what old clients still offer", () => {
  it("is asked for in the same way: a completion, the roots", async () => {
    server.tool("t", {}, async (_, ctx) => {
      const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Hi" } }];
      const [said, roots] = await Promise.all([ctx.sample({ messages, maxTokens: 9 }), ctx.roots()]);
      return { model: said.model, roots: roots.map((root) => root.uri) };
    });
    const asked = await call("t");
    const requests = Object.entries(asked.result?.inputRequests ?? {});
    expect(requests.map(([, request]) => request.method)).toEqual(["sampling/createMessage", "roots/list"]);
    const [[sample = ""] = [], [roots = ""] = []] = requests;
    const good = { role: "assistant", model: "m", content: { type: "text", text: "Ho" } };
    const retry = (inputResponses: object): Promise<Reply> =>
      call("t", { requestState: asked.result?.requestState, inputResponses });
    const wrong = await retry({ [sample]: good, [roots]: { roots: [{ uri: "https://x" }] } });
    expect(Object.keys(wrong.result?.inputRequests ?? {})).toEqual([roots]);
    const done = await retry({ [sample]: good, [roots]: { roots: [{ uri: "file:///a" }] } });
    expect(JSON.parse(said(done))).toEqual({ model: "m", roots: ["file:///a"] });
  });
});

describe("prompts and resources", () => {
  beforeEach(() => {
    server.resource("note://secret", {}, async (_, ctx) => (await ctx.elicit("Read it?", ["yes", "no"])).action);
    server.prompt("letter", {}, async (_, ctx) => {
      const tone = await ctx.elicit("Tone?", ["warm", "cold"]);
      return tone.action === "accept" ? `A ${tone.data} letter` : "No letter";
    });
  });
  const both = [
    ["prompts/get", { name: "letter" }, { "Tone?": value("warm") }],
    ["resources/read", { uri: "note://secret" }, { "Read it?": value("yes") }],
  ] as const;
  it.each(both)("%s may ask, once", async (method, params, script) => {
    const asked = await ask(server, method, params);
    expect(asked.result?.resultType).toBe("input_required");
    const retry = { ...params, ...answering(asked, script) };
    const done = await ask(server, method, retry);
    expect(done.result?.messages?.[0]?.content.text ?? done.result?.contents?.[0]?.text).toMatch(
      /A warm letter|accept/,
    );
    expect((await ask(server, method, retry)).result?._meta).toMatchObject({ "dev.tenon/replayed": true });
  });
  it.each(both)("%s is refused to a client that cannot ask", async (method, params) => {
    const refused = await ask(server, method, params, { capabilities: {} });
    expect(refused.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
  });
  it("ask over legacy sessions too, and fail with an error where they cannot", async () => {
    const { url } = await server.listen({ port: 0 });
    const client = await connect(url, "legacy", { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { value: "warm" } }));
    const got = await client.getPrompt({ name: "letter" });
    expect(got.messages[0]?.content).toMatchObject({ text: "A warm letter" });
    const mute = await connect(url, "legacy");
    await expect(mute.getPrompt({ name: "letter" })).rejects.toThrow('did not declare {"elicitation":{"form":{}}}');
    await expect(mute.readResource({ uri: "note://secret" })).rejects.toThrow("did not declare");
    await Promise.all([client.close(), mute.close()]);
  });
});

describe("a client that cannot be asked", () => {
  beforeEach(() => {
    server.tool("form", {}, async (_, ctx) => {
      try {
        return (await ctx.elicit("Sure?", z.boolean())).action;
      } catch {
        return "fell back";
      }
    });
    server.tool("page", {}, (_, ctx) => ctx.elicitUrl("Go", "https://a.example/"));
    server.tool("tools", {}, (_, ctx) => ctx.sample({ messages: [], maxTokens: 1, tools: [] }));
  });
  it.each([
    ["form", { elicitation: { url: {} } }, { elicitation: { form: {} } }],
    ["page", { elicitation: {} }, { elicitation: { url: {} } }],
    ["tools", { sampling: {} }, { sampling: { tools: {} } }],
  ])("is told what the tool %s needs, whatever a catch makes of it", async (name, capabilities, required) => {
    const refused = await call(name, {}, { capabilities });
    expect(refused.error).toMatchObject({ code: -32021, data: { requiredCapabilities: required } });
  });
  it("counts a bare elicitation capability as forms", async () => {
    expect(questions(await call("form", {}, { capabilities: { elicitation: {} } }))).toEqual(["Sure?"]);
  });
  it("gets an error result that says so on the legacy era", async () => {
    const { url } = await server.listen({ port: 0 });
    const client = await connect(url, "legacy");
    const result = await client.callTool({ name: "form" });
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result.content)).toContain("did not declare");
    await client.close();
  });
  it("may come back able: the refusal does not consume the answered question", async () => {
    const store = openMemory();
    const two = make({ store });
    two.tool("two", {}, async (_, ctx) => {
      await ctx.elicit("One?", z.string());
      await ctx.step("between", () => effects.push("between"));
      return (await ctx.elicitUrl("Go", "https://a.example/")).action;
    });
    const asked = await ask(two, "tools/call", { name: "two" });
    const retry = { name: "two", ...answering(asked, { "One?": value("x") }) };
    const refused = await ask(two, "tools/call", retry, { capabilities: { elicitation: { form: {} } } });
    expect(refused.error?.code).toBe(-32021);
    expect(questions(await ask(two, "tools/call", retry))).toEqual(["Go"]);
    expect(effects).toEqual(["between"]);
    await two.close();
  });
});
