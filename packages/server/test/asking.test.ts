import { randomBytes } from "node:crypto";
import { mkdtempSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client, ElicitResult } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, openStateKeys, type TenonServer } from "../src/index.ts";
import { META, modern, overSocket } from "./raw-requests.ts";
import { connect, effects, type Mode, shop } from "./servers.ts";
import { spawn } from "./spawned.ts";

const stdioServer = fileURLToPath(new URL("./stdio-server.ts", import.meta.url));
const capabilities = { elicitation: { form: {} } };
const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? "";

/** Answers questions by the first line of the script whose message fits. */
function answering(client: Client, script: Record<string, ElicitResult>): string[] {
  const asked: string[] = [];
  client.setRequestHandler("elicitation/create", (request) => {
    asked.push(request.params.message);
    return script[request.params.message] ?? { action: "cancel" };
  });
  return asked;
}
const value = (content: string | number | boolean | string[]): ElicitResult => ({
  action: "accept",
  content: { value: content },
});

let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = shop();
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());
beforeEach(() => {
  effects.length = 0;
});

describe.each(["modern", "legacy"] as const)("asking the user on the %s era", (mode: Mode) => {
  describe.each(["http", "stdio"] as const)("over %s", (transport) => {
    let client: Client;
    beforeAll(async () => {
      client =
        transport === "http"
          ? await connect(url, mode, { capabilities })
          : await spawn(stdioServer, mode, { capabilities });
    });
    afterAll(() => client.close());

    it("is one linear function: two questions, steps run once", async () => {
      const asked = answering(client, { "Buy tea?": value("yes"), "How many?": value(3) });
      const result = await client.callTool({ name: "buy", arguments: { item: "tea" } });
      expect(JSON.parse(textOf(result))).toEqual({ item: "tea", at: "1970-01-01T00:00:00.000Z", many: 3 });
      expect(asked).toEqual(["Buy tea?", "How many?"]);
      if (transport === "http") expect(effects).toEqual(["reserve tea", "charge 3"]);
    });
    it.each([
      [{ action: "decline" } as const, "not bought: decline"],
      [{ action: "cancel" } as const, "not bought: cancel"],
      [value("no"), "not bought: no"],
    ])("tells %j apart", async (answer, expected) => {
      answering(client, { "Buy tea?": answer });
      expect(textOf(await client.callTool({ name: "buy", arguments: { item: "tea" } }))).toBe(expected);
    });
    it("asks several questions of one round together", async () => {
      answering(client, { "Colours?": value(["red"]), "Name?": { action: "accept", content: { first: "Ann" } } });
      expect(JSON.parse(textOf(await client.callTool({ name: "two" })))).toEqual({
        a: { action: "accept", data: ["red"] },
        b: { action: "accept", data: { first: "Ann" } },
      });
    });
    it("asks again when an answer does not fit the shape", async () => {
      let tries = 0;
      client.setRequestHandler("elicitation/create", (request) => {
        if (request.params.message === "Buy tea?") return value("yes");
        tries += 1;
        return value(tries < 3 ? 99 : 2);
      });
      expect(JSON.parse(textOf(await client.callTool({ name: "buy", arguments: { item: "tea" } })))).toMatchObject({
        many: 2,
      });
      expect(tries).toBe(3);
    });
    it("cannot be bypassed by a catch", async () => {
      answering(client, { "Sure?": value(true) });
      expect(textOf(await client.callTool({ name: "swallow" }))).toBe("answered");
    });
    it("fails without effect when the client cannot ask", async () => {
      const mute = transport === "http" ? await connect(url, mode) : await spawn(stdioServer, mode);
      const call = mute.callTool({ name: "buy", arguments: { item: "tea" } });
      if (mode === "modern") await expect(call).rejects.toMatchObject({ code: -32021 });
      else expect((await call).isError).toBe(true);
      expect(effects.filter((effect) => effect.startsWith("charge"))).toEqual([]);
      await mute.close();
    });
  });
});

describe("a waiting question", () => {
  const first = { name: "buy", arguments: { item: "tea" } };
  const asks = { meta: { [META.capabilities]: capabilities } };
  interface Asked {
    result: {
      resultType: string;
      inputRequests: Record<string, { params: { message: string; requestedSchema: object } }>;
      requestState: string;
    };
  }
  const ask = async (at: string): Promise<Asked["result"]> =>
    ((await overSocket(at, modern("tools/call", first, asks))).messages as [Asked])[0].result;
  const retry = async (
    at: string,
    params: object,
  ): Promise<Record<string, never> & { error?: { data: { reason: string } } }> =>
    (await overSocket(at, modern("tools/call", { ...first, ...params }, asks))).messages[0] as never; // JSON-RPC

  it("goes out as the revision says", async () => {
    const asked = await ask(url);
    expect(asked.resultType).toBe("input_required");
    expect(Object.values(asked.inputRequests)).toEqual([
      {
        method: "elicitation/create",
        params: expect.objectContaining({
          message: "Buy tea?",
          requestedSchema: {
            type: "object",
            properties: { value: { type: "string", enum: ["yes", "no"] } },
            required: ["value"],
          },
        }),
      },
    ]);
    expect(asked.requestState).not.toContain("tea");
  });
  it("is answered on another replica with the same keys, and the step before it is not run again", async () => {
    const stateKeys = [randomBytes(32).toString("base64url")];
    const replicas = [shop({ stateKeys }), shop({ stateKeys: [randomBytes(32).toString("base64url"), ...stateKeys] })];
    const [one, two] = (await Promise.all(replicas.map((replica) => replica.listen({ port: 0 })))).map(
      (listening) => listening.url,
    ) as [string, string];
    const asked = await ask(one);
    const [key] = Object.keys(asked.inputRequests) as [string];
    const next = await retry(two, { requestState: asked.requestState, inputResponses: { [key]: value("yes") } });
    expect(next).toMatchObject({ result: { resultType: "input_required" } });
    expect(effects).toEqual(["reserve tea"]);
    await Promise.all(replicas.map((replica) => replica.close()));
  });
  it("belongs to its arguments", async () => {
    const { requestState } = await ask(url);
    const stolen = await retry(url, { arguments: { item: "gold" }, requestState });
    expect(stolen.error?.data.reason).toBe("foreign");
  });
  it("expires", async () => {
    const hasty = shop({ questionTtlMs: 1 });
    const { url: at } = await hasty.listen({ port: 0 });
    const { requestState } = await ask(at);
    await new Promise((resolve) => setTimeout(resolve, 1_100)); // its time counts in whole seconds
    expect((await retry(at, { requestState })).error?.data.reason).toBe("expired");
    await hasty.close();
  });
  it("is asked again when a retry brings no answer, an answer to something else, or one that was never asked", async () => {
    const asked = await ask(url);
    for (const inputResponses of [undefined, { other: value("yes") }, { constructor: value("yes") }]) {
      expect(await retry(url, { requestState: asked.requestState, inputResponses })).toMatchObject({
        result: { resultType: "input_required" },
      });
    }
    const [key] = Object.keys(asked.inputRequests) as [string];
    expect(await retry(url, { inputResponses: { [key]: value("yes") } })).toMatchObject({
      result: { resultType: "input_required" },
    });
  });
});

describe("shapes and steps that cannot work", () => {
  const run = async (use: (server: TenonServer) => void): Promise<string> => {
    const broken = createServer({ name: "broken", version: "1.0.0", exposeErrors: true, logSink: () => undefined });
    use(broken);
    const { url: at } = await broken.listen({ port: 0 });
    const client = await connect(at, "modern", { capabilities });
    answering(client, { "First?": value("x") });
    const result = textOf(await client.callTool({ name: "t" }));
    await client.close();
    await broken.close();
    return result;
  };
  it("name the nested field", async () => {
    const shape = z.object({ address: z.object({ street: z.string() }) });
    expect(await run((s) => s.tool("t", {}, (_, ctx) => ctx.elicit("Where?", shape)))).toContain(
      'the field "address" is a object',
    );
  });
  it("refuse one step key used twice", async () => {
    const twice = await run((s) =>
      s.tool("t", {}, async (_, ctx) => {
        await ctx.step("pay", () => 1);
        await ctx.step("pay", () => 2);
      }),
    );
    expect(twice).toContain('the key "pay" was used twice');
  });
  it("notice a question that changed between rounds under the same key", async () => {
    let round = 0;
    const changed = await run((s) =>
      s.tool("t", {}, async (_, ctx) => {
        round += 1;
        await ctx.elicit("First?", z.string(), { key: "first" });
        await ctx.elicit(round < 3 ? "Second?" : "Another second?", z.string(), { key: "second" });
        return "done";
      }),
    );
    // the script cancels "Second?"; that answer is never taken for another question
    expect(changed).toBe("done");
  });
});

describe("state keys in a file", () => {
  it("are made once, readable by the owner only, and refused when malformed", () => {
    const file = join(mkdtempSync(join(tmpdir(), "tenon-")), "keys", "state");
    const keys = openStateKeys(file);
    expect(openStateKeys(file)).toEqual(keys);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(() => createServer({ name: "x", version: "1.0.0", stateKeys: ["short"] })).toThrow("32 bytes");
    writeFileSync(file, `${keys[0]}\r\n${keys[0]}\r\n`);
    expect(openStateKeys(file)).toEqual([keys[0], keys[0]]);
    // a server without its keys must not go on with one that dies with the process
    writeFileSync(file, "\n");
    expect(() => openStateKeys(file)).toThrow("holds no key");
  });
});

describe("definitions", () => {
  const fresh = (): TenonServer => createServer({ name: "x", version: "1.0.0" });
  it("refuse duplicates, illegal names, unknown options and inputs that are no objects", () => {
    expect(() =>
      fresh()
        .tool("a", {}, () => 1)
        .tool("a", {}, () => 2),
    ).toThrow('Tool "a" is defined twice');
    expect(() => fresh().tool("查询", {}, () => 1)).toThrow("is not allowed");
    expect(() => fresh().tool("a", { desciption: "x" } as never, () => 1)).toThrow('did you mean "description"?');
    expect(() => fresh().tool("a", { input: z.string() as never }, () => 1)).toThrow("must be the schema of an object");
    expect(() => fresh().tool("a", { input: z.object({ at: z.date() }) }, () => 1)).toThrow(
      "tool a: input has no JSON Schema",
    );
    expect(() => fresh().resource("no-scheme", {}, () => 1)).toThrow("has no scheme");
    expect(() => createServer({ name: "x", version: "1", transports: [] } as never)).toThrow('no option "transports"');
  });
});
