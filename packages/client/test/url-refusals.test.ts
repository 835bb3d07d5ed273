// Revision 2025-11-25: a server may refuse a request until a person has visited an address (JSON-RPC error -32042).
import { describe, expect, it } from "vitest";
import {
  type CallDriver,
  type ElicitationAnswer,
  type ElicitationRequest,
  renderText,
  type WireResult,
} from "../src/index.ts";
import { ALL_STUBS, closeAfterEach, connect, type StubReply, type StubRequest, start } from "./stub/index.ts";

closeAfterEach();
const URL_REQUIRED = -32_042;
const done = { content: [{ type: "text", text: "done" }] };
const visit = (more: object = {}) => ({
  mode: "url",
  message: "Sign in at your bank",
  url: "https://bank.example/in",
  elicitationId: "visit-1",
  ...more,
});
const refuse = (reply: StubReply, elicitations: unknown) =>
  reply.error(URL_REQUIRED, "sign in first", { elicitations });
const times =
  (count: number, elicitations: unknown = [visit()]) =>
  (request: StubRequest, reply: StubReply) =>
    request.nth <= count ? refuse(reply, elicitations) : done;

describe.each(ALL_STUBS)("a server over %s (%s) that wants a person to visit an address first", (_, era, stub) => {
  const asking = (server: { config: object }, answer: ElicitationAnswer, more: object = {}) => {
    const seen: ElicitationRequest[] = [];
    const elicitation = (question: ElicitationRequest) => {
      seen.push(question);
      return answer;
    };
    const client = connect({ s: { ...server.config, ...more } as never }, { elicitation });
    return { client, seen };
  };

  it("gets the call again once the person agreed, as it was", async () => {
    const server = await start(stub({ onCall: times(1) }));
    const { client, seen } = asking(server, { action: "accept" });
    expect(renderText((await client.callTool("s", "t", { n: 1 })).content)).toBe("done");
    expect(seen).toMatchObject([{ mode: "url", message: "Sign in at your bank", host: { display: "bank.example" } }]);
    const [first, second] = server.requests.filter(({ method }) => method === "tools/call");
    expect(second?.params.arguments).toEqual(first?.params.arguments);
    expect(second?.params).not.toHaveProperty("inputResponses");
  });

  it.each(["decline", "cancel"] as const)("does not get it again after %s: that is a typed error", async (action) => {
    const server = await start(stub({ onCall: times(1) }));
    const { client } = asking(server, { action });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "declined", maybeExecuted: false });
    expect(server.count("tools/call")).toBe(1);
  });

  it.each([
    [{ url: "javascript:alert(1)" }, "unsafe_url"],
    [{ url: "https://evil.example/" }, "unexpected_host"],
  ])("may not send the person anywhere: %j", async (more, code) => {
    const server = await start(stub({ onCall: times(1, [visit(more)]) }));
    const { client, seen } = asking(server, { action: "accept" }, { expectHosts: ["bank.example"] });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code });
    expect(seen).toEqual([]);
  });

  it.each([["none"], [[]], [[visit({ mode: "form" })]], [[null]]])(
    "but does not say which stays a refusal: %j",
    async (elicitations) => {
      const server = await start(stub({ onCall: times(1, elicitations) }));
      const { client } = asking(server, { action: "accept" });
      await expect(client.callTool("s", "t")).rejects.toMatchObject({
        code: "rpc_error",
        data: { code: URL_REQUIRED },
      });
    },
  );

  it("is asked again only as often as rounds allow, whatever new address it names", async () => {
    const server = await start(
      stub({ onCall: ({ nth }, reply) => refuse(reply, [visit({ elicitationId: `visit-${nth}` })]) }),
    );
    const { client, seen } = asking(server, { action: "accept" });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "too_many_rounds" });
    expect(seen).toHaveLength(server.count("tools/call"));
    expect(seen.length).toBeLessThan(20);
  });

  it("does so for a resource and a prompt as well", async () => {
    const server = await start(
      stub({
        capabilities: { tools: {}, resources: {}, prompts: {} },
        on: {
          "resources/read": ({ nth, params }, reply) =>
            nth === 1 ? refuse(reply, [visit()]) : { contents: [{ uri: params.uri, text: "secret" }] },
          "prompts/get": ({ nth }, reply) =>
            nth === 1
              ? refuse(reply, [visit()])
              : { messages: [{ role: "user", content: { type: "text", text: "p" } }] },
        },
      }),
    );
    const { client } = asking(server, { action: "accept" });
    expect((await client.readResources("s", ["a://b"]))[0]?.asString()).toBe("secret");
    expect(await client.getPrompt("s", "p")).toHaveLength(1);
  });

  it("is asked through the driver where questions suspend the call, and its refusal can be stored", async () => {
    const server = await start(stub({ onCall: times(1) }));
    const memo = new Map<number, string>();
    const driver = (answer?: ElicitationAnswer): CallDriver => ({
      leg: async (send, { round }) => {
        const result = memo.get(round) ?? JSON.stringify(await send());
        memo.set(round, result);
        return JSON.parse(result) as WireResult;
      },
      answer: async (questions) => {
        if (!answer) throw new Error("suspended");
        return Object.fromEntries(Object.keys(questions).map((key) => [key, answer]));
      },
    });
    const client = connect({ s: server.config }, { elicitation: "interrupt" });
    await expect(client.callTool("s", "t", {}, { driver: driver() })).rejects.toThrow("suspended");
    expect(server.count("tools/call")).toBe(1);
    const resumed = await client.callTool("s", "t", {}, { driver: driver({ action: "accept" }) });
    expect(renderText(resumed.content)).toBe("done");
    expect(server.count("tools/call")).toBe(2);
    await expect(client.callTool("s", "t", {})).resolves.toMatchObject({ isError: false });
  });

  it("is not asked again while the person is on the way, but as soon as it says that they are done", async () => {
    if (era === "modern") return; // has no such message
    const server = await start(stub({ onCall: times(2) }));
    const { client, seen } = asking(server, { action: "accept" });
    const call = client.callTool("s", "t");
    await expect.poll(() => server.count("tools/call"), { timeout: 10_000 }).toBe(2);
    const began = performance.now();
    // over HTTP the stream for announcements may not be open yet
    const tell = setInterval(() => server.push("notifications/elicitation/complete", { elicitationId: "visit-1" }), 50);
    expect(renderText((await call.finally(() => clearInterval(tell))).content)).toBe("done");
    expect(seen).toHaveLength(1);
    // it is asked after ten seconds in any case
    expect(performance.now() - began).toBeLessThan(9_000);
  });
});
