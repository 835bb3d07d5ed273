import { expect, it } from "vitest";
import { z } from "zod";
import { createServer } from "../index.ts";
import { connect } from "../testing/index.ts";

function library(seen: string[] = []) {
  const server = createServer({ name: "library", version: "1.0.0", logSink: () => undefined });
  server.use((request, next) => {
    seen.push(request.method);
    return next(request);
  });
  server.resource("policy://return", { mimeType: "text/markdown" }, () => "# Thirty days");
  server.resource("ask://me", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes", "no"])).action);
  server.prompt("reply", { input: z.object({ id: z.string() }) }, ({ id }) => `Answer order ${id}`);
  server.tool("read", { input: z.object({ uri: z.string() }) }, async ({ uri }, ctx) => {
    const [part] = await ctx.readResource(uri);
    return part?.text ?? "nothing";
  });
  server.tool("draft", {}, async (_, ctx) => (await ctx.getPrompt("reply", { id: "7" }))[0]?.content.text ?? "");
  return server;
}

it.each(["modern", "legacy"] as const)("a tool reads a resource and a prompt of its own server (%s)", async (era) => {
  const seen: string[] = [];
  await using server = library(seen);
  await using client = await connect(server, { era });
  const read = await client.callTool("read", { uri: "policy://return" });
  expect(read.content).toEqual([{ type: "text", text: "# Thirty days" }]);
  expect((await client.callTool("draft")).content).toEqual([{ type: "text", text: "Answer order 7" }]);
  expect(seen.filter((method) => !method.startsWith("tools/"))).toEqual(["resources/read", "prompts/get"]);
});

it("also inside a server that was mounted, by the names it knows itself", async () => {
  await using outer = createServer({ name: "outer", version: "1.0.0" });
  outer.mount("inner", library());
  await using client = await connect(outer, { era: "modern" });
  const read = await client.callTool("inner_read", { uri: "policy://return" });
  expect(read.content).toEqual([{ type: "text", text: "# Thirty days" }]);
});

it.each(["policy://none", "ask://me"])(
  "%s cannot be read inside a handler, and the model does not learn why",
  async (uri) => {
    await using server = library();
    await using client = await connect(server, { era: "modern" });
    const read = await client.callTool("read", { uri });
    expect(read.isError).toBe(true);
    expect(JSON.stringify(read.content)).toMatch(/Tool read failed \(reference/);
  },
);

it("an author may catch it and say it in his own words", async () => {
  await using server = library();
  server.tool("careful", {}, async (_, ctx) => {
    try {
      return (await ctx.readResource("ask://me"))[0]?.text ?? "";
    } catch (error) {
      return error instanceof Error ? error.message : "";
    }
  });
  await using client = await connect(server, { era: "modern", elicit: {} });
  expect(JSON.stringify((await client.callTool("careful")).content)).toContain("asks the person a question");
});
