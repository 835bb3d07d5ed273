// What a call's error says about the call: that there is no such tool, and whether anything may have taken effect.
import { describe, expect, it } from "vitest";
import { ALL_STUBS, closeAfterEach, connect, type StubHandler, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
const refuse =
  (code: number, message: string): StubHandler =>
  (_, reply) =>
    reply.error(code, message);

describe.each(ALL_STUBS)("a tool that does not exist, over %s of the %s revision", (_, __, stub) => {
  const tools = ["get_order", "get_invoice"];

  it("is told by the name that was probably meant, with one request for the call and one for the list", async () => {
    const server = await start(stub({ tools, onCall: refuse(-32_602, "Invalid params") }));
    const asked = connect({ s: server.config }).callTool("s", "get_ordr");
    await expect(asked).rejects.toMatchObject({
      name: "ProtocolError",
      code: "unknown_tool",
      server: "s",
      maybeExecuted: false,
      data: { name: "get_ordr", near: "get_order", code: -32_602 },
    });
    await expect(asked).rejects.toThrow('server "s" has no tool "get_ordr"; did you mean "get_order"?');
    expect([server.count("tools/list"), server.count("tools/call")]).toEqual([1, 1]);
  });

  it("is told by the server's words where its list is not known", async () => {
    const on = { "tools/list": refuse(-32_603, "not now") };
    for (const words of ["Unknown tool: nope", "Tool nope not found", 'MCP error: tool "nope" does not exist']) {
      const server = await start(stub({ on, onCall: refuse(-32_602, words) }));
      const asked = connect({ s: server.config }).callTool("s", "nope");
      await expect(asked).rejects.toMatchObject({ code: "unknown_tool", maybeExecuted: false });
      await expect(asked).rejects.toThrow(words);
    }
  });

  it("is not confused with one that needs a scope: it is hidden, and the server says which", async () => {
    const refusal: StubHandler = (_, reply) =>
      reply.error(-32_602, "Tool refund needs the scope pay", { reason: "insufficient_scope", scopes: ["pay"] });
    const server = await start(stub({ tools, onCall: refusal }));
    const client = connect({ s: server.config });
    await client.listTools();
    const asked = client.callTool("s", "refund");
    await expect(asked).rejects.toMatchObject({ code: "rpc_error", data: { data: { scopes: ["pay"] } } });
    await expect(asked).rejects.toThrow("Tool refund needs the scope pay");
  });

  it("is told where it was listed before and is gone", async () => {
    const server = await start(stub({ tools, onCall: refuse(-32_602, "Unknown tool get_order") }));
    const client = connect({ s: server.config });
    await client.listTools();
    await expect(client.callTool("s", "get_order")).rejects.toMatchObject({ code: "unknown_tool" });
  });

  it("is not confused with wrong arguments, or with what a tool did not find", async () => {
    for (const words of ["Invalid arguments", "Tool get_order: order not found", "Unknown tool kind in get_order"]) {
      const server = await start(stub({ tools, onCall: refuse(-32_602, words) }));
      const asked = connect({ s: server.config }).callTool("s", "get_order");
      await expect(asked).rejects.toMatchObject({ code: "rpc_error", data: { code: -32_602 } });
    }
  });
});

it("a tool that a server shows to single callers only can be called although the list lacks it", async () => {
  const server = await start(stubHttp({ tools: ["a"] }));
  const client = connect({ s: server.config });
  await client.listTools();
  expect(await client.callTool("s", "hidden", {}, { headers: { Authorization: "Bearer ann" } })).toMatchObject({
    isError: false,
  });
});

describe("whether a call that failed may have taken effect", () => {
  it.each([
    [-32_700, false],
    [-32_600, false],
    [-32_601, false],
    [-32_602, false],
    [-32_603, true],
    [-32_000, true],
    [1234, true],
  ])("is said for JSON-RPC error %i: %s", async (code, maybeExecuted) => {
    const server = await start(stubHttp({ onCall: refuse(code, "no") }));
    const asked = connect({ s: server.config }).callTool("s", "t");
    await expect(asked).rejects.toMatchObject({ code: "rpc_error", maybeExecuted, data: { code } });
  });

  it("is no for an error of the server's own that came with a status of a wrong request", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_000, message: "Bad Request" } });
    const onCall: StubHandler = (_, reply) => reply.http(400, { "content-type": "application/json" }, body);
    const client = connect({ s: (await start(stubHttp({ onCall }))).config });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "rpc_error", maybeExecuted: false });
  });

  it.each([401, 403])("is no for a credential that was refused with %i", async (status) => {
    const client = connect({ s: (await start(stubHttp({ onCall: (_, reply) => reply.http(status) }))).config });
    await client.listTools();
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ name: "AuthError", maybeExecuted: false });
  });

  const question = {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: "Sure?",
      requestedSchema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
    },
  };
  const asks = (request = question) => ({
    onCall: () => ({ resultType: "input_required", inputRequests: { q: request }, requestState: "s" }),
  });
  it.each([
    ["invalid_answer", () => ({ action: "accept" as const, content: {} })],
    [
      "handler_failed",
      () => {
        throw new TypeError("bug");
      },
    ],
    ["no_answerer", undefined],
  ])("is yes for %s: the server worked before it asked", async (code, elicitation) => {
    const server = await start(stubHttp(asks()));
    const client = connect({ s: server.config }, elicitation ? { elicitation } : {});
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code, maybeExecuted: true });
  });
  it("is yes for a question of a kind that nobody offers", async () => {
    const server = await start(stubHttp(asks({ ...question, method: "x/y" })));
    await expect(connect({ s: server.config }).callTool("s", "t")).rejects.toMatchObject({
      code: "unsupported_question",
      maybeExecuted: true,
    });
  });
});
