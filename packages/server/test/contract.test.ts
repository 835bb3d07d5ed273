import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import "../../../test/built.ts";
import type { Client } from "@modelcontextprotocol/client";
import {
  createKeyRing,
  newContractKey,
  publicContractKey,
  readDeclaration,
  writeContractKeys,
} from "@tenon/core/contract";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it, vi } from "vitest";
import { z } from "zod";
import { type AnyContext, createServer, type TenonServer } from "../src/index.ts";
import { connect as inMemory } from "../src/testing/index.ts";
import { CONTEXT, desk } from "./contract-server.ts";
import { initialize, legacy, modern, overSocket, type Raw } from "./raw-requests.ts";
import { connect, type Mode } from "./servers.ts";
import { spawn } from "./spawned.ts";

const stdioServer = fileURLToPath(new URL("./contract-stdio.ts", import.meta.url));
const EXTENSION = "dev.tenon/context";
const VERSION = "dev.tenon/contract";
const good = { user_id: "alice", session_id: "s1" };

let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = desk();
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

/** What a client of an era reads of a server's contract. */
const announced = (client: Client, mode: Mode): unknown => {
  const capabilities = client.getServerCapabilities();
  return (mode === "modern" ? capabilities?.extensions : capabilities?.experimental)?.[EXTENSION];
};

describe.each(["modern", "legacy"] as const)("a contract on the %s era", (mode) => {
  describe.each(["http", "stdio"] as const)("over %s", (transport) => {
    let client: Client;
    beforeAll(async () => {
      client = transport === "http" ? await connect(url, mode) : await spawn(stdioServer, mode);
    });
    afterAll(() => client.close());
    const call = (name: string, context?: unknown, meta: object = {}) =>
      client.callTool({
        name,
        arguments: {},
        _meta: { ...(context !== undefined && { [EXTENSION]: context }), ...meta },
      });

    it("is announced with its schema and what may be asked for", () => {
      const declaration = readDeclaration(announced(client, mode));
      expect(declaration).toMatchObject({
        version: "0.4.2",
        server_id: "desk",
        context_schema: { type: "object", required: ["user_id", "session_id"] },
      });
      expect(declaration.capabilities).toEqual([
        "tools.list",
        "tools.execute",
        "resources.list",
        "resources.read",
        "prompts.list",
        "prompts.get",
        "completion.complete",
        "contexts.get",
      ]);
    });
    it("lets a handler see the context and the session it names", async () => {
      const { structuredContent } = await call("who", good);
      expect(structuredContent).toMatchObject({ context: good });
      // a legacy session over HTTP has an id of its own
      if (mode === "modern" || transport === "stdio") expect(structuredContent).toMatchObject({ session: "s1" });
    });
    it("keeps the context from being changed", async () => {
      expect((await call("change", good)).structuredContent).toEqual({ context: good });
    });
    it("says when a call brings no context at all", async () => {
      await expect(call("who")).rejects.toThrow(
        "The context does not meet this server's contract: no context was sent along, and user_id is required",
      );
      await expect(call("who", {})).rejects.toThrow("contract: the context has no user_id");
    });
    it.each([
      ["nothing", undefined, "missing_context_field", "user_id"],
      ["an empty text", { ...good, user_id: "" }, "missing_context_field", "user_id"],
      ["a missing field", { user_id: "alice" }, "missing_context_field", "session_id"],
      ["a number for a text", { ...good, user_id: 7 }, "invalid_context_value", "user_id"],
      ["a word that is not in the list", { ...good, department: "it" }, "invalid_context_value", "department"],
      ["a text instead of an object", "alice", "invalid_context_value", "context"],
    ])("refuses %s before the tool runs", async (_, context, reason, field) => {
      await expect(call("who", context)).rejects.toMatchObject({ code: -32602, data: { reason, field } });
    });
    it("is asked for by resources and prompts as well, and not by lists", async () => {
      const refused = { code: -32602, data: { reason: "missing_context_field", field: "user_id" } };
      await expect(client.readResource({ uri: "desk://note" })).rejects.toMatchObject(refused);
      await expect(client.getPrompt({ name: "greet" })).rejects.toMatchObject(refused);
      expect((await client.listTools()).tools.length).toBeGreaterThan(0);
      const _meta = { [EXTENSION]: good };
      expect((await client.readResource({ uri: "desk://note", _meta })).contents).toMatchObject([
        { text: "for alice" },
      ]);
      expect((await client.getPrompt({ name: "greet", _meta })).messages).toMatchObject([
        { content: { text: "Dear alice" } },
      ]);
    });
    it("reaches what a handler reads of its own server", async () => {
      expect((await call("read", good)).content).toMatchObject([{ text: "for alice" }]);
    });
    it("answers a version it does not have with those it has", async () => {
      await expect(call("who", good, { [VERSION]: "9.9.9" })).rejects.toMatchObject({
        code: -32602,
        data: { reason: "unsupported_contract_version", supported: ["0.4.2", "0.4.1"] },
      });
      expect((await call("who", good, { [VERSION]: "0.4.1" })).structuredContent).toMatchObject({ context: good });
    });
    it("gives the last context of a session back", async () => {
      await call("who", { ...good, session_id: "kept", department: "sales" });
      const get = (meta: object = {}) =>
        client.request(
          { method: "contexts/get", params: { session_id: "kept", _meta: meta } } as never,
          z.looseObject({}) as never,
        ) as Promise<Record<string, unknown>>;
      const { context, expires_at } = await get();
      expect(context).toEqual({ user_id: "alice", session_id: "kept", department: "sales" });
      expect(Date.parse(String(expires_at)) - Date.now()).toBeGreaterThan(23 * 3_600_000);
      expect(await get({ [VERSION]: "0.4.1" })).not.toHaveProperty("expires_at");
      expect(await get({ "dev.tenon/contract-without": ["expires_at"] })).not.toHaveProperty("expires_at");
    });
  });
});

describe("the road a request takes", () => {
  const cases: [string, () => Raw][] = [
    ["modern", () => modern("tools/call", { name: "who", arguments: {} }, { meta: { [EXTENSION]: good } })],
    ["modern, without", () => modern("tools/call", { name: "who", arguments: {} })],
    [
      "modern, wrong",
      () => modern("tools/call", { name: "who", arguments: {} }, { meta: { [EXTENSION]: { ...good, user_id: 1 } } }),
    ],
    ["modern, another version", () => modern("tools/list", {}, { meta: { [VERSION]: "1.0.0" } })],
    ["legacy", () => legacy("tools/call", { name: "who", arguments: {}, _meta: { [EXTENSION]: good } })],
    ["legacy, without", () => legacy("resources/read", { uri: "desk://note" })],
  ];
  it.each(cases)("makes no difference: %s", async (_, raw) => {
    const fast = await overSocket(url, raw());
    const slow = raw();
    const [last] = (await overSocket(url, { ...slow, headers: { ...slow.headers, origin: "http://127.0.0.1" } }))
      .messages;
    expect(last).toEqual(fast.messages[0]);
  });
});

describe("the signature of what is announced", () => {
  const declarationOf = async (of: TenonServer, era: Mode, _meta: object = {}) => {
    const to = await of.listen({ port: 0 });
    const raw = era === "modern" ? modern("server/discover", {}, { meta: _meta }) : initialize({}, _meta);
    const [message] = (await overSocket(to.url, raw)).messages as [{ result: { ttlMs?: number; capabilities: never } }];
    await to.close();
    const place = era === "modern" ? "extensions" : "experimental";
    return { ...message.result, declaration: readDeclaration(message.result.capabilities[place][EXTENSION]) };
  };

  it.each(["HS256", "EdDSA"] as const)("is one that a client with the key believes, on both eras (%s)", async (alg) => {
    const key = newContractKey({ kid: "k1", alg });
    await using signed = desk({ contract: { schema: CONTEXT, keys: [key] } });
    const ring = createKeyRing([publicContractKey(key)]);
    for (const era of ["modern", "legacy"] as const) {
      for (const version of ["0.4.2", "0.4.1"]) {
        const { declaration } = await declarationOf(signed, era, { [VERSION]: version });
        expect(declaration.version).toBe(version);
        expect(ring.faultOf(declaration)).toBeUndefined();
        expect(ring.faultOf({ ...declaration, capabilities: [...declaration.capabilities, "x.y"] })).toBe("invalid");
      }
    }
  });

  it("is the next key's once its time has come, and no answer is kept longer", async () => {
    vi.useFakeTimers({ now: new Date("2026-11-30T23:59:50Z"), toFake: ["Date"] });
    try {
      const old = newContractKey({ kid: "old", alg: "HS256" });
      const next = newContractKey({ kid: "next", alg: "EdDSA", activeFrom: "2026-12-01T00:00:00Z" });
      const keys = writeContractKeys([old, next]);
      await using signed = desk({ contract: { schema: CONTEXT, keys } });
      const ring = createKeyRing([old, publicContractKey(next)]);
      const before = await declarationOf(signed, "modern");
      expect(before.declaration.signature?.kid).toBe("old");
      expect(before.declaration.next_rotation_time).toBe("2026-12-01T00:00:00.000Z");
      expect(before.ttlMs).toBeLessThanOrEqual(10_000);
      vi.setSystemTime(new Date("2026-12-01T00:00:00Z"));
      for (const era of ["modern", "legacy"] as const) {
        const { declaration, ttlMs } = await declarationOf(signed, era);
        expect(declaration.signature?.kid).toBe("next");
        expect(ring.faultOf(declaration)).toBeUndefined();
        if (era === "modern") expect(ttlMs).toBe(60_000);
      }
      // clocks may be five minutes apart
      expect(ring.faultOf(before.declaration, Date.parse("2026-12-01T00:04:59Z"))).toBeUndefined();
      expect(ring.faultOf(before.declaration, Date.parse("2026-12-01T00:05:01Z"))).toBe("expired");
    } finally {
      vi.useRealTimers();
    }
  });

  it("also changes on a connection that lives on", async () => {
    const first = new Date(Date.now() + 1_500).toISOString();
    const keys = writeContractKeys([
      newContractKey({ kid: "old", alg: "HS256" }),
      newContractKey({ kid: "next", alg: "HS256", activeFrom: first }),
    ]);
    const client = await spawn(stdioServer, "modern", {}, { TENON_CONTRACT_KEYS: keys });
    const kid = async (): Promise<unknown> => {
      const discovered = (await client.request({ method: "server/discover" } as never, z.looseObject({}) as never)) as {
        capabilities: { extensions: Record<string, unknown> };
      };
      return readDeclaration(discovered.capabilities.extensions[EXTENSION]).signature?.kid;
    };
    expect(await kid()).toBe("old");
    await expect.poll(kid, { timeout: 5_000, interval: 200 }).toBe("next");
    await client.close();
  });

  it("refuses to announce a version it does not have, and opens no session for it", async () => {
    for (const raw of [
      modern("server/discover", {}, { meta: { [VERSION]: "9.9.9" } }),
      initialize({}, { [VERSION]: 7 }),
    ]) {
      const { messages, headers } = await overSocket(url, raw);
      expect(messages).toMatchObject([
        {
          id: 1,
          error: { code: -32602, data: { reason: "unsupported_contract_version", supported: ["0.4.2", "0.4.1"] } },
        },
      ]);
      expect(headers["mcp-session-id"]).toBeUndefined();
    }
  });

  it("comes from keys that can sign, or the server does not start", async () => {
    const key = newContractKey({ kid: "k", alg: "EdDSA" });
    const later = newContractKey({ kid: "k", alg: "HS256", activeFrom: "2099-01-01T00:00:00Z" });
    const faults: [unknown, string][] = [
      [[publicContractKey(key)], "is a public key"],
      [[later], "none is active yet"],
      ["k:HS256:abc", "32 are the least"],
      [[], "there is none"],
    ];
    for (const [keys, message] of faults) {
      await using wrong = desk({ contract: { schema: CONTEXT, keys: keys as never } });
      await expect(wrong.listen({ port: 0 })).rejects.toMatchObject({
        code: "contract_keys",
        message: expect.stringMatching(new RegExp(`^createServer\\(\\{ contract \\}\\)\\.keys: .*${message}`)),
      });
    }
  });
});

describe("capabilities of a contract", () => {
  it("are refused when nothing implements them, before anybody is served", async () => {
    const capabilities = ["tools.execute", "sampling.create", "prompts.get"];
    const server = createServer({ name: "s", version: "1", contract: { schema: CONTEXT, capabilities } });
    server.tool("t", {}, () => "");
    const drift = {
      name: "ConfigError",
      code: "contract_drift",
      data: { capabilities: ["sampling.create", "prompts.get"] },
    };
    await expect(server.listen({ port: 0 })).rejects.toMatchObject(drift);
    await expect(server.fetch(new Request("http://127.0.0.1/mcp"))).rejects.toMatchObject(drift);
    await expect(server.stdio()).rejects.toMatchObject(drift);
    await server.close();
  });
  it.each(["modern", "legacy"] as const)(
    "that are not declared are refused on the %s era, lists as well",
    async (era) => {
      const capabilities = ["tools.list", "tools.execute", "resources.read"];
      await using narrow = desk({ contract: { schema: CONTEXT, capabilities } });
      await using client = await inMemory(narrow, { era });
      const meta = { [EXTENSION]: good };
      const refused = (capability: string) => ({
        data: { code: -32601, data: { reason: "undeclared_capability", capability } },
      });
      expect((await client.listTools()).length).toBeGreaterThan(0);
      await expect(client.listResourceTemplates()).rejects.toMatchObject(refused("resources.list"));
      await expect(client.getPrompt("greet", {}, { meta })).rejects.toMatchObject(refused("prompts.get"));
      expect((await client.callTool("who", {}, { meta })).structured).toMatchObject({ context: good });
      // a handler may use what callers may not
      expect((await client.callTool("read", {}, { meta })).text).toBe("for alice");
    },
  );
});

describe("the type of a context in handlers", () => {
  const schema = z.object({ user_id: z.string(), amount: z.number().optional(), nested: z.object({ a: z.null() }) });
  const offer = (server: TenonServer<{ db: string }>) => server;

  it("is that of the contract's schema, in tools, resources and prompts", async () => {
    type Context = Readonly<z.input<typeof schema>>;
    await using typed = createServer({
      name: "typed",
      version: "1.0.0",
      contract: { schema },
      lifespan: async () => ({ value: { db: "db" } }),
    });
    typed.tool("who", {}, (_, ctx) => {
      expectTypeOf(ctx.context).toEqualTypeOf<Context>();
      expectTypeOf(ctx.lifespan).toEqualTypeOf<{ db: string }>();
      return ctx.context.user_id;
    });
    typed.resource("a://b", {}, (_, ctx) => ctx.context.user_id);
    typed.prompt("p", {}, (_, ctx) => ctx.context.nested.a ?? ctx.context.user_id);
    // @ts-expect-error no such field
    typed.resource("a://c", {}, (_, ctx) => ctx.context.userid);
    expect(offer(typed)).toBe(typed);
  });
  it("is open where there is no such schema", async () => {
    await using plain = createServer({ name: "plain", version: "1.0.0" });
    plain.tool("who", {}, (_, ctx) => {
      expectTypeOf(ctx.context).toEqualTypeOf<AnyContext>();
      return ctx.context?.user_id ?? null;
    });
    await using byHand = createServer({ name: "hand", version: "1.0.0", contract: { schema: { type: "object" } } });
    byHand.tool("who", {}, (_, ctx) => ctx.context?.user_id ?? null);
  });
});

describe("a contract that no client would read", () => {
  it.each([
    ["a schema of 100 KiB", { schema: { type: "object", description: "x".repeat(100_000) } }],
    ["a very long name", { schema: CONTEXT, serverId: "x".repeat(257) }],
    ["no name", { schema: CONTEXT, serverId: "" }],
  ])("keeps the server from starting: %s", async (_, contract) => {
    await using large = desk({ contract });
    await expect(large.listen({ port: 0 })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("no client would read this"),
    });
  });
});

describe("a method that is not declared", () => {
  it("is refused alike on both roads", async () => {
    await using narrow = desk({ contract: { schema: CONTEXT, capabilities: ["tools.execute"] } });
    const to = (await narrow.listen({ port: 0 })).url;
    for (const make of [() => modern("prompts/list"), () => legacy("resources/read", { uri: "desk://note" })]) {
      const fast = await overSocket(to, make());
      const slow = await overSocket(to, { ...make(), headers: { ...make().headers, origin: "http://127.0.0.1" } });
      expect(fast.messages).toMatchObject([{ error: { code: -32601, data: { reason: "undeclared_capability" } } }]);
      expect([slow.status, slow.messages.at(-1)]).toEqual([fast.status, fast.messages[0]]);
    }
  });
});

describe("a server without a contract", () => {
  it("loads none of it, nor a compiler of schemas", async () => {
    const code = `
      import { createRequire } from "node:module";
      import { createServer } from "@tenon/server";
      const server = createServer({ name: "plain", version: "1", logSink() {}, ...(process.argv[1] === "with" && { contract: { schema: { type: "object" } } }) });
      server.tool("t", {}, () => "ok");
      await (await server.listen({ port: 0 })).close();
      console.log(Object.keys(createRequire(import.meta.url).cache).some((path) => /[\\\\/]ajv[\\\\/]/.test(path)));
      await server.close();`;
    const said = async (how: string) =>
      (await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code, how])).stdout.trim();
    expect(await said("without")).toBe("false");
    expect(await said("with")).toBe("true"); // so the look sees it where it is
  });
});

describe("who a context speaks of", () => {
  const caller = { subject: "alice", scopes: [], claims: {} };
  it("is the caller of the token, where there is one", async () => {
    await using client = await inMemory(server, { caller });
    const call = (user_id: string) => client.callTool("who", {}, { meta: { [EXTENSION]: { ...good, user_id } } });
    expect((await call("alice")).structured).toMatchObject({ context: good });
    await expect(call("bob")).rejects.toMatchObject({
      data: { code: -32602, data: { reason: "invalid_context_value", field: "user_id" } },
    });
  });
});

describe("a task of a server with a contract", () => {
  it("sees the context its call was made with", async () => {
    await using client = await inMemory(server, { tasks: true });
    const { structured } = await client.callTool("long", {}, { meta: { [EXTENSION]: good } });
    expect(structured).toEqual({ context: good, session: "s1", task: true });
    await expect(client.callTool("long")).rejects.toMatchObject({ data: { data: { field: "user_id" } } });
  });
});

describe("a call that asks", () => {
  it.each(["modern", "legacy"] as const)("has its context in every round, on the %s era", async (era) => {
    await using client = await inMemory(server, { era, elicit: { "Sure?": true } });
    const { structured } = await client.callTool("sure", {}, { meta: { [EXTENSION]: good } });
    expect(structured).toEqual({ action: "accept", user: "alice" });
  });
});
