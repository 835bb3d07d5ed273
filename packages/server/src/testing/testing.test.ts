import { ProtocolError } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, multi, type TenonServer, ToolError } from "../index.ts";
import { connect, type Question } from "./index.ts";

function desk(): TenonServer {
  const server = createServer({ name: "desk", version: "2.0.0", instructions: "Be kind.", logSink: () => undefined });
  server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
  server.tool("who", {}, (_, ctx) => ({
    who: ctx.caller?.subject,
    team: ctx.headers?.get("x-team"),
    meta: ctx.meta.note,
  }));
  server.tool("refund", {}, async (_, ctx) => {
    const sure = await ctx.elicit("Refund 500?", ["confirm", "cancel"], { key: "sure" });
    if (sure.action !== "accept" || sure.data === "cancel") return "not refunded";
    const why = await ctx.elicit("Why?", z.object({ reason: z.string(), days: z.int().min(0) }));
    return why.action === "accept" ? why.data : why.action;
  });
  server.tool("colours", {}, (_, ctx) => ctx.elicit("Colours?", multi(["red", "green"])));
  server.tool("long", {}, async (_, ctx) => {
    await ctx.progress(1, 2, "half");
    await ctx.log.warning("slow", { logger: "disk" });
    await ctx.log.debug("detail");
    await ctx.progress(2, 2);
    return "done";
  });
  server.tool("refuse", {}, () => {
    throw new ToolError("No");
  });
  server.tool("region", { input: z.object({ region: z.string().meta({ "x-mcp-header": "Region" }) }) }, (_, ctx) =>
    String(ctx.headers?.get("mcp-param-region")),
  );
  server.resource("note://{place}/{id}", { mimeType: "text/plain" }, ({ id }) => `note ${id}`);
  server.prompt("reply", { input: z.object({ to: z.string() }) }, ({ to }) => `Dear ${to}`);
  return server;
}

describe.each(["modern", "legacy"] as const)("the test client on the %s era", (era) => {
  it("knows the server and what it offers", async () => {
    await using client = await connect(desk(), { era });
    expect(client.server).toMatchObject({ name: "desk", version: "2.0.0", instructions: "Be kind." });
    expect((await client.listTools()).map((tool) => tool.name)).toContain("add");
    expect((await client.listResourceTemplates()).map((entry) => entry.uriTemplate)).toEqual(["note://{place}/{id}"]);
    expect((await client.listPrompts()).map((prompt) => prompt.name)).toEqual(["reply"]);
  });
  it("calls, reads and renders", async () => {
    await using client = await connect(desk(), { era });
    expect(await client.callTool("add", { a: 1, b: 2 })).toMatchObject({ text: "3", isError: false });
    expect(await client.callTool("refuse")).toMatchObject({ text: "No", isError: true });
    expect(await client.readResource("note://%E5%8C%97/7")).toMatchObject([{ text: "note 7" }]);
    expect(await client.getPrompt("reply", { to: "张三" })).toEqual([
      { role: "user", content: { type: "text", text: "Dear 张三" } },
    ]);
    await expect(client.callTool("ad")).rejects.toMatchObject({ code: "rpc_error", data: { code: -32602 } });
  });
  it("plays the person: by message, by fields, by what was done", async () => {
    await using client = await connect(desk(), {
      era,
      elicit: { "Refund 500?": "confirm", "Why?": { reason: "broken", days: 3 }, "Colours?": ["red"] },
    });
    expect((await client.callTool("refund")).structured).toEqual({ reason: "broken", days: 3 });
    expect((await client.callTool("colours")).structured).toEqual({ action: "accept", data: ["red"] });
    expect(client.asked.map((question) => question.message)).toEqual(["Refund 500?", "Why?", "Colours?"]);
    await using refusing = await connect(desk(), { era, elicit: { "Refund 500?": { action: "decline" } } });
    expect((await refusing.callTool("refund")).text).toBe("not refunded");
  });
  it("hands each question to a function, and asks it again when the answer does not fit", async () => {
    const answer = ({ message, times }: Question) =>
      message === "Refund 500?" ? "confirm" : { reason: "broken", days: times < 3 ? -1 : 2 };
    await using client = await connect(desk(), { era, elicit: answer });
    expect((await client.callTool("refund")).structured).toEqual({ reason: "broken", days: 2 });
    expect(client.asked.map((question) => question.times)).toEqual([1, 1, 2, 3]);
  });
  it("names a question the test has no answer for", async () => {
    await using client = await connect(desk(), { era, elicit: { "Refund 500?": "confirm" } });
    await expect(client.callTool("refund")).rejects.toMatchObject({
      code: "unanswered_question",
      message: expect.stringContaining('"Why?"'),
    });
  });
  it("ends a loop of answers that never fit, and says which shape was asked for", async () => {
    await using client = await connect(desk(), { era, elicit: { "Refund 500?": "maybe" } });
    await expect(client.callTool("refund")).rejects.toMatchObject({
      code: "too_many_rounds",
      message: expect.stringContaining('"enum":["confirm","cancel"]'),
    });
  });
  it("says when one value cannot answer several fields", async () => {
    await using client = await connect(desk(), { era, elicit: { "Refund 500?": "confirm", "Why?": "broken" } });
    await expect(client.callTool("refund")).rejects.toThrow("has the fields reason, days");
  });
  it("declares no questions when it has no answers", async () => {
    await using client = await connect(desk(), { era });
    const call = client.callTool("refund");
    if (era === "modern") await expect(call).rejects.toMatchObject({ data: { code: -32021 } });
    else expect((await call).isError).toBe(true);
  });
  it("records progress and log messages", async () => {
    await using client = await connect(desk(), { era });
    await client.callTool("long");
    expect(client.progress).toEqual([
      { progress: 1, total: 2, message: "half" },
      { progress: 2, total: 2 },
    ]);
    expect(client.logs).toEqual([
      { level: "warning", logger: "disk", data: "slow" },
      { level: "debug", data: "detail" },
    ]);
    await using quiet = await connect(desk(), { era, logLevel: "warning" });
    await quiet.callTool("long");
    expect(quiet.logs.map((entry) => entry.level)).toEqual(["warning"]);
  });
  it("acts for a caller, with headers and metadata", async () => {
    await using client = await connect(desk(), { era, caller: { subject: "zhangsan" }, headers: { "x-team": "blue" } });
    const { structured } = await client.callTool("who", {}, { meta: { note: "n" } });
    expect(structured).toEqual({ who: "zhangsan", team: "blue", meta: "n" });
  });
  it("says what a caller lacks that no token could be", async () => {
    const refused = connect(desk(), { era, caller: { subject: "", scopes: [] } });
    await expect(refused).rejects.toMatchObject({ name: "ConfigError", code: "caller" });
    const scopes = "orders:read" as never;
    await expect(connect(desk(), { era, caller: { subject: "a", scopes } })).rejects.toThrow("scopes must be a list");
  });
  it("refuses an option nobody reads", async () => {
    await expect(connect(desk(), { era, elict: {} } as never)).rejects.toThrow('did you mean "elicit"?');
  });
});

describe("the test client on the modern era", () => {
  it("answers by key", async () => {
    await using client = await connect(desk(), { elicit: { sure: "cancel" } });
    expect((await client.callTool("refund")).text).toBe("not refunded");
    expect(client.asked[0]).toMatchObject({ key: "sure", mode: "form" });
  });
  it("sends arguments as headers where the schema asks for it", async () => {
    await using client = await connect(desk());
    expect((await client.callTool("region", { region: "华东" })).text).toBe("=?base64?5Y2O5Lic?=");
  });
  it("follows tasks when it is told to, and answers what they ask", async () => {
    const server = createServer({ name: "t", version: "1.0.0" });
    server.tool("both", { task: "optional" }, async (_, ctx) => {
      const sure = await ctx.elicit("Sure?", z.boolean());
      return `${sure.action} ${ctx.task ? "task" : "call"}`;
    });
    server.tool("no", { task: "required" }, () => {
      throw new ProtocolError(-32_600, "not so");
    });
    await using plain = await connect(server, { elicit: { "Sure?": true } });
    expect((await plain.callTool("both")).text).toBe("accept call");
    await using client = await connect(server, { tasks: true, elicit: { "Sure?": true } });
    expect((await client.callTool("both")).text).toBe("accept task");
    await expect(client.callTool("no")).rejects.toMatchObject({ data: { code: -32_600 } });
    await server.close();
  });
});
