import { META } from "@tenon/core";
import {
  type ContractDeclaration,
  type ContractKey,
  createKeyRing,
  newContractKey,
  publicContractKey,
  writeContractKeys,
} from "@tenon/core/contract";
import { describe, expect, it } from "vitest";
import type { ClientEvents, ContractEvent, ServerContract, ToolRuntime } from "../src/index.ts";
import { closeAfterEach, connect, STUBS, type StubBehavior, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

const ALL = ["tools.list", "tools.execute", "contexts.get"];
const declaration: ContractDeclaration = {
  version: "0.4.2",
  server_id: "orders",
  capabilities: ALL,
  context_schema: {
    type: "object",
    properties: { user_id: { type: "string" }, amount: { type: "number" } },
    required: ["user_id"],
  },
};
const { context: EXTENSION, contract: ASKED, contractWithout: WITHOUT } = META;

/** What a client asked for, as it stands in the request that opens the connection. */
const asked = (params: Record<string, unknown>) => (params._meta ?? {}) as Record<string, unknown>;

/** A stub that announces a contract; `announce` may say another, by what is asked. */
function announcing(
  announce: (asked: Record<string, unknown>) => object | undefined,
  more: StubBehavior = {},
): StubBehavior {
  const capabilities = (given: unknown, place: "extensions" | "experimental") => {
    const announced = announce(given as Record<string, unknown>);
    return { tools: {}, ...more.capabilities, ...(announced && { [place]: { [EXTENSION]: announced } }) };
  };
  const serverInfo = { name: "stub", version: "1.0.0" };
  return {
    ...more,
    on: {
      "server/discover": ({ params }, reply) =>
        more.era === "legacy"
          ? void reply.error(-32_601, "Method not found")
          : { supportedVersions: ["2026-07-28"], capabilities: capabilities(asked(params), "extensions"), serverInfo },
      initialize: ({ params }) => ({
        protocolVersion: "2025-11-25",
        capabilities: capabilities(asked(params), "experimental"),
        serverInfo,
      }),
      ...more.on,
    },
  };
}

function watched(): { told: ContractEvent[]; events: ClientEvents } {
  const told: ContractEvent[] = [];
  return { told, events: { onContract: (event) => void told.push(event) } };
}

const key = newContractKey({ kid: "now", alg: "EdDSA" });
const signed = (keys: readonly ContractKey[] = [key], what: Partial<ContractDeclaration> = {}) =>
  createKeyRing(keys).sign({ ...declaration, ...what });
const trusting: ServerContract = { keys: [publicContractKey(key)], context: { user_id: "ann" } };

describe.each(STUBS)("a server with a contract (%s)", (_, stub) => {
  it.each(["modern", "legacy"] as const)(
    "is agreed with by the first request, and gets the context of each call (%s)",
    async (era) => {
      const server = await start(stub(announcing(() => signed(), { era })));
      const { told, events } = watched();
      const client = connect({ s: { ...server.config, contract: trusting } }, { events });
      expect(await client.callTool("s", "t", {})).toMatchObject({ isError: false });
      await client.callTool("s", "t", {}, { meta: { [EXTENSION]: { amount: 5 } } });
      const calls = server.requests.filter(({ method }) => method === "tools/call");
      expect(calls.map(({ params }) => asked(params)[EXTENSION])).toEqual([
        { user_id: "ann" },
        { user_id: "ann", amount: 5 },
      ]);
      expect(server.count("server/discover") + server.count("initialize")).toBe(era === "modern" ? 1 : 2);
      const opening = server.requests.find(({ method }) => method === "server/discover");
      expect(asked(opening?.params ?? {})[ASKED]).toBe("0.4.2");
      const steps = [{ step: "0.4.2", outcome: "accepted", ms: expect.any(Number) }];
      expect(told).toEqual([{ server: "s", steps, accepted: "0.4.2" }]);
      expect(client.servers()).toMatchObject([
        {
          capabilities: ALL,
          contract: { version: "0.4.2", serverId: "orders", signed: true, nextRotation: expect.any(String) },
        },
      ]);
      expect(client.servers()[0]?.contract).not.toHaveProperty("drift");
    },
  );

  it("is told the thread of what is read as well, where the context is made from it", async () => {
    const capabilities = ["resources.read", "prompts.get"];
    const on = {
      "resources/read": () => ({ contents: [{ uri: "a://b", text: "read" }] }),
      "prompts/get": () => ({ messages: [] }),
    };
    const announced = announcing(() => ({ ...declaration, capabilities }), {
      capabilities: { resources: {}, prompts: {} },
      on,
    });
    const server = await start(stub(announced));
    const context = ({ threadId }: ToolRuntime) => ({ user_id: "ann", session_id: threadId });
    const client = connect({ s: { ...server.config, contract: { context } } });
    const options = { runtime: { threadId: "t1" } };
    await client.readResources("s", ["a://b"], options);
    await client.getPrompt("s", "greet", {}, options);
    const told = server.requests.filter(({ method }) => Object.hasOwn(on, method));
    expect(told.map(({ params }) => asked(params)[EXTENSION])).toEqual([
      { user_id: "ann", session_id: "t1" },
      { user_id: "ann", session_id: "t1" },
    ]);
  });

  it("is never sent a call whose context lacks a field or has a wrong one", async () => {
    const server = await start(stub(announcing(() => declaration)));
    const client = connect({ s: server.config });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({
      name: "ContractError",
      code: "missing_context_field",
      message:
        'The contract of server "s" is not met: no context was sent along, and user_id is required: give `contract.context` of ' +
        "the server, or `meta` of the call",
      maybeExecuted: false,
      data: { field: "user_id" },
    });
    const empty = client.callTool("s", "t", {}, { meta: { [EXTENSION]: { amount: 5 } } });
    await expect(empty).rejects.toThrow(/the context has no user_id$/);
    const meta = { [EXTENSION]: { user_id: "ann", amount: "5" } };
    await expect(client.callTool("s", "t", {}, { meta })).rejects.toMatchObject({
      code: "invalid_context_value",
      data: { field: "amount" },
    });
    expect(server.count("tools/call")).toBe(0);
  });

  it("is refused before any call when what it may do was changed on the way", async () => {
    const tampered = { ...signed(), capabilities: [...ALL, "resources.read"] };
    const server = await start(stub(announcing(() => tampered)));
    const { told, events } = watched();
    const client = connect({ s: { ...server.config, contract: trusting } }, { events });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({
      name: "ContractError",
      code: "signature",
      server: "s",
      maybeExecuted: false,
      data: { reason: "invalid" },
    });
    expect(server.count("tools/call") + server.count("tools/list")).toBe(0);
    expect(server.count("server/discover")).toBe(1);
    expect(server.count("initialize")).toBe(0);
    expect(told).toMatchObject([{ steps: [{ step: "0.4.2", outcome: "refused" }] }]);
    expect(told[0]).not.toHaveProperty("accepted");
  });

  it("goes down the ladder where it does not know the newest version", async () => {
    const old = { ...declaration, version: "0.4.1" };
    const refuse: StubBehavior["on"] = {
      "server/discover": ({ params }, reply) =>
        asked(params)[ASKED] === "0.4.1"
          ? {
              supportedVersions: ["2026-07-28"],
              capabilities: { tools: {}, extensions: { [EXTENSION]: old } },
              serverInfo: { name: "stub", version: "1" },
            }
          : void reply.error(-32_602, "no such version", {
              reason: "unsupported_contract_version",
              supported: ["0.4.1"],
            }),
    };
    const server = await start(stub({ on: refuse }));
    const { told, events } = watched();
    const client = connect({ s: { ...server.config, contract: { context: { user_id: "ann" } } } }, { events });
    await client.callTool("s", "t");
    expect(told).toMatchObject([
      {
        accepted: "0.4.1",
        steps: [
          { step: "0.4.2", outcome: "refused" },
          { step: "0.4.2 without expires_at" },
          { step: "0.4.1", outcome: "accepted" },
        ],
      },
    ]);
    expect(client.servers()).toMatchObject([{ contract: { version: "0.4.1", signed: false } }]);
    expect(server.count("initialize")).toBe(0);
  });
});

describe("a contract", () => {
  it("is asked for without expires_at, then as 0.4.1, then not at all", async () => {
    const seen: unknown[] = [];
    const server = await start(
      stubHttp(
        announcing((given) => {
          seen.push([given[ASKED], given[WITHOUT]]);
          return { ...declaration, version: "9.0.0" };
        }),
      ),
    );
    const { told, events } = watched();
    const client = connect({ s: { ...server.config, contract: {} } }, { events });
    await client.callTool("s", "t");
    expect(seen).toEqual([
      ["0.4.2", undefined],
      ["0.4.2", ["expires_at"]],
      ["0.4.1", undefined],
      [undefined, undefined],
    ]);
    expect(told).toMatchObject([{ accepted: "plain" }]);
    expect(client.servers()[0]).not.toHaveProperty("contract");
  });

  it("that nobody asked for is kept all the same, and costs no further request", async () => {
    const server = await start(stubHttp(announcing(() => declaration)));
    const client = connect({ s: server.config });
    await client.callTool("s", "t", {}, { meta: { [EXTENSION]: { user_id: "ann" } } });
    expect(client.servers()).toMatchObject([{ contract: { version: "0.4.2", signed: false } }]);
    expect(server.requests.map(({ method }) => method)).toEqual(["server/discover", "tools/list", "tools/call"]);
  });

  it("that a server does not have is no trouble unless the client says so", async () => {
    const server = await start(stubHttp());
    const { told, events } = watched();
    const wants = { context: () => ({ user_id: "ann" }) };
    const client = connect({ s: { ...server.config, contract: wants } }, { events });
    await client.callTool("s", "t");
    expect(server.count("server/discover")).toBe(1);
    expect(server.requests.some(({ params }) => EXTENSION in asked(params))).toBe(false);
    expect(told[0]?.steps.map(({ step, outcome }) => `${step} ${outcome}`)).toEqual([
      "0.4.2 refused",
      "0.4.2 without expires_at refused",
      "0.4.1 refused",
      "plain accepted",
    ]);
    for (const [contract, code] of [
      [{ plain: "refuse" }, "negotiation"],
      [trusting, "signature"],
    ] as const) {
      const strict = connect({ s: { ...server.config, contract } });
      await expect(strict.callTool("s", "t")).rejects.toMatchObject({ name: "ContractError", code });
    }
    expect(server.count("tools/call")).toBe(1);
    expect(server.count("initialize")).toBe(0);
  });

  it("that was refused is not asked for by fifty calls at once", async () => {
    const server = await start(stubHttp(announcing(() => declaration)));
    const client = connect({ s: { ...server.config, contract: trusting } });
    const calls = Array.from({ length: 50 }, () => client.callTool("s", "t"));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    await expect(client.listTools()).resolves.toEqual([]);
    expect(client.servers()).toMatchObject([{ health: "down", error: { code: "signature" } }]);
    expect(server.requests.map(({ method }) => method)).toEqual(["server/discover"]);
  });

  it("whose fields the client declares with other types is refused by their names", async () => {
    const server = await start(stubHttp(announcing(() => declaration)));
    const schema = { type: "object", properties: { user_id: { type: "integer" }, more: { type: "string" } } };
    const client = connect({ s: { ...server.config, contract: { schema } } });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({
      code: "schema_conflict",
      data: { fields: ["user_id"] },
    });
  });

  it("decides what may be asked, whatever the server would answer", async () => {
    const capabilities = ["resources.list", "prompts.list", "prompts.get", "completion.complete"];
    const server = await start(
      stubHttp(announcing(() => ({ ...declaration, capabilities }), { capabilities: { resources: {}, prompts: {} } })),
    );
    const client = connect({ s: { ...server.config, contract: { context: { user_id: "ann" } } } });
    expect(await client.listTools()).toEqual([]);
    expect(await client.listResources()).toEqual([]);
    for (const use of [
      () => client.callTool("s", "t"),
      () => client.readResources("s", ["a://b"]),
      () => client.getContext("s", "x"),
    ]) {
      await expect(use()).rejects.toMatchObject({ name: "ContractError", code: "undeclared_capability" });
    }
    expect(server.requests.map(({ method }) => method)).toEqual(["server/discover"]);
    expect(client.servers()[0]).toMatchObject({
      capabilities,
      contract: {
        drift: { undeclared: ["tools.list", "tools.execute", "resources.read"], unannounced: ["completion.complete"] },
      },
    });
  });

  it("that the server finds unmet is said in the words of the contract", async () => {
    const server = await start(
      stubHttp({
        onCall: (_, reply) => reply.error(-32_602, "no user", { reason: "missing_context_field", field: "user_id" }),
      }),
    );
    const client = connect({ s: server.config });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({
      name: "ContractError",
      code: "missing_context_field",
      maybeExecuted: false,
      data: { reason: "missing_context_field", field: "user_id" },
    });
  });

  it("gives back the last context of a session", async () => {
    const expires_at = "2026-12-01T00:00:00.000Z";
    const on: StubBehavior["on"] = {
      "contexts/get": ({ params }) => ({ context: { user_id: String(params.session_id) }, expires_at }),
    };
    const server = await start(stubHttp(announcing(() => declaration, { on })));
    const client = connect({ s: server.config });
    expect(await client.getContext("s", "one")).toEqual({ context: { user_id: "one" }, expiresAt: expires_at });
    const plain = connect({ s: (await start(stubHttp())).config });
    await expect(plain.getContext("s", "one")).rejects.toMatchObject({ code: "no_contract" });
  });

  it("is asked for anew when its time is over, and no call waits or fails for it", async () => {
    let now = signed([key], {});
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    const next = newContractKey({ kid: "next", alg: "EdDSA", activeFrom: at(400) });
    const ring = createKeyRing([key, next]);
    now = ring.sign(declaration);
    const server = await start(stubHttp(announcing(() => (now = ring.sign(declaration)))));
    const keys = writeContractKeys([key, next].map(publicContractKey));
    const { told, events } = watched();
    const client = connect({ s: { ...server.config, contract: { keys, context: { user_id: "ann" } } } }, { events });
    const until = Date.now() + 900;
    while (Date.now() < until) {
      await client.callTool("s", "t");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(now.signature?.kid).toBe("next");
    expect(server.count("server/discover")).toBe(2);
    expect(told).toMatchObject([{ accepted: "0.4.2" }, { accepted: "0.4.2" }]);
    // another client of this process does not take over what is not believed any more
    const other = connect({ s: { ...server.config, contract: { keys, context: { user_id: "ann" } } } });
    await other.callTool("s", "t");
    expect(server.count("server/discover")).toBe(3);
  });

  it("that turns out forged when it is renewed ends the connection", async () => {
    const soon = new Date(Date.now() + 300).toISOString();
    const ring = createKeyRing([key, newContractKey({ kid: "next", alg: "EdDSA", activeFrom: soon })]);
    let calls = 0;
    const forger = createKeyRing([newContractKey({ kid: "now", alg: "EdDSA" })]);
    const server = await start(stubHttp(announcing(() => (calls++ === 0 ? ring : forger).sign(declaration))));
    const client = connect({ s: { ...server.config, contract: trusting } });
    await client.callTool("s", "t");
    await new Promise((resolve) => setTimeout(resolve, 350));
    await client.callTool("s", "t");
    await expect.poll(() => client.servers()[0]?.error?.code).toBe("signature");
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "signature" });
    expect(server.count("tools/call")).toBe(2);
  });
});
