import { META } from "@tenon/core";
import { type ContractDeclaration, createKeyRing, newContractKey, publicContractKey } from "@tenon/core/contract";
import { describe, expect, it } from "vitest";
import type { ContractEvent, ServerContract } from "../src/index.ts";
import { cache } from "../src/interceptors/index.ts";
import { closeAfterEach, connect, type StubBehavior, start, stubHttp, stubStdio } from "./stub/index.ts";

closeAfterEach();

const key = newContractKey({ kid: "k", alg: "EdDSA" });
const declaration = (capabilities = ["tools.list", "tools.execute"]): ContractDeclaration =>
  createKeyRing([key]).sign({
    version: "0.4.2",
    server_id: "orders",
    capabilities,
    context_schema: { type: "object", properties: { user_id: { type: "string" } }, required: ["user_id"] },
  });
const contract: ServerContract = { keys: [publicContractKey(key)], context: { user_id: "ann" } };
const serverInfo = { name: "stub", version: "1.0.0" };
const answers: StubBehavior["on"] = {
  "server/discover": () => ({
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {}, extensions: { [META.context]: declaration() } },
    serverInfo,
  }),
};

describe("a server whose contract is wanted", () => {
  it("may be an old one that stays silent when it is asked for the newer revision", async () => {
    const capabilities = { tools: {}, experimental: { [META.context]: declaration() } };
    const on: StubBehavior["on"] = {
      "server/discover": () => {},
      initialize: () => ({ protocolVersion: "2025-11-25", capabilities, serverInfo }),
    };
    const server = await start(stubHttp({ era: "legacy", onHttp: silentDiscover, on }));
    const told: ContractEvent[] = [];
    const client = connect(
      { s: { ...server.config, contract } },
      { events: { onContract: (event) => void told.push(event) } },
    );
    await client.callTool("s", "t");
    expect(client.servers()).toMatchObject([{ era: "legacy", contract: { signed: true } }]);
    expect(told.map(({ accepted }) => accepted)).toEqual([undefined, "0.4.2"]);
  });

  it("may be a process that takes longer to start than a step", async () => {
    const server = await start(stubStdio({ delayMs: 900, on: answers }));
    const client = connect({ s: { ...server.config, contract } });
    await client.callTool("s", "t");
    expect(client.servers()).toMatchObject([{ contract: { signed: true } }]);
    expect(server.opened).toBe(1);
  });

  it("is not waited for beyond connectTimeoutMs", async () => {
    const server = await start(stubHttp({ delayMs: 5_000 }));
    const client = connect({ s: { ...server.config, contract: {}, connectTimeoutMs: 1_000 } });
    const began = performance.now();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "negotiation", retryable: true });
    expect(performance.now() - began).toBeLessThan(1_600);
    expect(server.count("server/discover")).toBe(2);
  });

  it.each([
    ["is down", undefined, "unreachable"],
    ["wants a credential", 401, "unauthorized"],
    ["redirects elsewhere", 307, "redirected"],
  ] as const)("that %s is told as that, at once", async (_, how, code) => {
    const stub =
      how !== undefined
        ? await start(
            stubHttp({
              onHttp: (_req, res) => {
                res.writeHead(how, { location: "http://elsewhere.example/mcp" }).end();
                return true;
              },
            }),
          )
        : undefined;
    const client = connect({ s: { url: stub?.url ?? "http://127.0.0.1:9/mcp", contract } });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code, maybeExecuted: false });
    expect(stub?.hits.length ?? 0).toBeLessThan(3);
  });

  it("of the older revision is refused without a signature, and not asked in any other way", async () => {
    const server = await start(stubHttp({ era: "legacy" }));
    const client = connect({ s: { ...server.config, contract } });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "signature" });
    expect(server.count("initialize")).toBe(1);
    expect(server.count("tools/call")).toBe(0);
  });

  it("is left at once when the client is closed in the middle of the ladder", async () => {
    const server = await start(stubHttp({ delayMs: 5_000 }));
    const client = connect({ s: { ...server.config, contract } });
    const call = client.callTool("s", "t");
    setTimeout(() => void client.close(), 1_000);
    const began = performance.now();
    await expect(call).rejects.toMatchObject({ code: "closed" });
    expect(performance.now() - began).toBeLessThan(1_500);
    await new Promise((resolve) => setTimeout(resolve, 900));
    expect(server.count("server/discover")).toBe(2);
  });

  it("is given nobody else's answer for a context that a function makes", async () => {
    let user = "ann";
    const on: StubBehavior["on"] = {
      "server/discover": () => ({
        supportedVersions: ["2026-07-28"],
        capabilities: {
          tools: {},
          resources: {},
          extensions: { [META.context]: declaration(["tools.list", "tools.execute", "resources.read"]) },
        },
        serverInfo,
      }),
      "resources/read": ({ params }) => ({ contents: [{ uri: "a://b", text: JSON.stringify(params._meta) }] }),
    };
    const tool = { name: "t", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };
    const onCall: StubBehavior["onCall"] = ({ params }) => ({
      content: [{ type: "text", text: JSON.stringify(params._meta) }],
    });
    const server = await start(stubHttp({ tools: [tool], on, onCall }));
    const client = connect(
      { s: { ...server.config, contract: { context: () => ({ user_id: user }) } } },
      { interceptors: [cache({ ttlMs: 60_000 })] },
    );
    for (const who of ["ann", "bob", "ann"]) {
      user = who;
      expect(JSON.stringify(await client.callTool("s", "t"))).toContain(who);
      const [read] = await client.readResources("s", ["a://b"]);
      expect(read?.asString()).toContain(who);
    }
    expect(server.count("tools/call")).toBe(2);
    expect(server.count("resources/read")).toBe(2);
    const failing = connect({
      s: {
        ...server.config,
        contract: {
          context: () => {
            throw new Error("no session");
          },
        },
      },
    });
    await expect(failing.callTool("s", "t")).rejects.toMatchObject({ code: "context_failed", maybeExecuted: false });
  });
});

describe("replicas of a server with a contract", () => {
  const announcing = (announced: unknown): StubBehavior => ({
    on: {
      "server/discover": () => ({
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {}, extensions: { [META.context]: announced } },
        serverInfo,
      }),
    },
  });
  const forged = { ...declaration(), server_id: "others" };

  it("are used as far as their contracts are believed and allow it", async () => {
    const [changed, good, lesser] = await Promise.all(
      [forged, declaration(), declaration(["contexts.get"])].map((one) => start(stubHttp(announcing(one)))),
    );
    const replicas = [changed, lesser, good].map((stub) => stub?.url ?? "");
    const client = connect({ s: { replicas, contract } });
    for (let thread = 0; thread < 20; thread++) {
      const runtime = { threadId: `t${thread}` };
      expect(await client.callTool("s", "t", {}, { runtime })).toMatchObject({ isError: false });
    }
    expect([changed, lesser, good].map((stub) => stub?.count("tools/call"))).toEqual([0, 0, 20]);
    const told = client.servers()[0]?.replicas?.map(({ drift, health }) => drift ?? health);
    expect(told).toEqual(
      expect.arrayContaining([expect.objectContaining({ undeclared: ["tools.list", "tools.execute"] })]),
    );
    expect((await client.listTools()).map(({ wireName }) => wireName)).toEqual(["t"]);
  });

  it("are refused for the contract's sake where none is believed", async () => {
    const stubs = await Promise.all([1, 2].map(() => start(stubHttp(announcing(forged)))));
    const client = connect({ s: { replicas: stubs.map(({ url }) => url), contract } });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ name: "ContractError", code: "signature" });
  });

  it("belong to the session that the configuration names", async () => {
    const stubs = await Promise.all([1, 2, 3, 4].map(() => start(stubHttp(announcing(declaration())))));
    let session = "";
    const context = () => ({ user_id: "ann", session_id: session });
    const client = connect({ s: { replicas: stubs.map(({ url }) => url), contract: { ...contract, context } } });
    const places: number[] = [];
    for (const one of ["a", "b", "c", "d", "e", "f", "a", "b", "c", "d", "e", "f"]) {
      session = one;
      const before = stubs.map((stub) => stub.count("tools/call"));
      await client.callTool("s", "t");
      places.push(stubs.findIndex((stub, i) => stub.count("tools/call") > (before[i] ?? 0)));
    }
    expect(places.slice(6)).toEqual(places.slice(0, 6));
    expect(new Set(places).size).toBeGreaterThan(1);
  });
});

/** An old server that does not answer what it does not know. */
function silentDiscover(_req: unknown, _res: unknown, body: string): boolean {
  return body.includes('"server/discover"');
}

describe("the options of a contract", () => {
  const withContract = (given: unknown) => () =>
    connect({ s: { url: "http://127.0.0.1:9/mcp", contract: given as never } });
  it.each([
    [{ keys: "a:HS256:c2VjcmV0" }, "32 are the least"],
    [{ keys: "" }, "there is none"],
    [{ keys: [publicContractKey(key)], plain: "allow" }, "give one of the two"],
    [{ plain: "never" }, "must be one of allow, refuse"],
    [{ schema: 5 }, "schema must be a schema"],
    [{ context: "ann" }, "context must be an object of fields"],
    [{ kees: [] }, 'did you mean "keys"'],
    ["0.4.2", "must be an object"],
  ])("%j is refused when the client is made", (given, words) => {
    expect(withContract(given)).toThrow(words);
    expect(withContract(given)).not.toThrow("c2VjcmV0");
  });
});
