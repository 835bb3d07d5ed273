import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@tenon/client";
import { createAgent } from "langchain";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Listening, listen } from "../../client/test/servers.ts";
import { readKept, taskHandler } from "../../client/test/tasks-server.ts";
import { bareLoop, dispatch, type LoopEvent, MultiServerMCPClient, mcpTools } from "../src/index.ts";
import { openaiEndpoint } from "./openai-endpoint.ts";
import { callingModel } from "./scripted-model.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-loop-tasks-"));
const file = join(folder, "tasks.json");
const ok = { action: "accept" as const, content: { ok: true } };

let shop: Listening;
beforeAll(async () => {
  shop = await listen(taskHandler(file));
});
afterAll(async () => {
  await shop.kill();
  rmSync(folder, { recursive: true, force: true });
});

const connect = () => createClient({ servers: { shop: { url: shop.url } }, elicitation: () => ok });

describe("a call that becomes a task", () => {
  it("is one call to a bare loop, with its question answered and its end told", async () => {
    const args = { label: "bare", ms: 300, ask: ["sure"] };
    await using endpoint = await openaiEndpoint([
      { calls: [{ id: "call_1", name: "mcp_shop_work", args }] },
      { text: "finished" },
    ]);
    await using client = connect();
    const events: LoopEvent[] = [];
    const { reply, messages } = await bareLoop({
      client,
      model: "any",
      endpoint: { baseUrl: endpoint.baseUrl, apiKey: "sk-test" },
      messages: [{ role: "user", content: "go" }],
      onEvent: (event) => void events.push(event),
    });
    expect(reply).toBe("finished");
    expect(messages.find(({ role }) => role === "tool")?.content).toContain('"done":"bare","answers":{"sure"');
    expect(events.map(({ type }) => type)).toEqual(["tool-start", "tool-end", "text"]);
  });

  it("that fails is told to the model, with a warning, and does not end the loop", async () => {
    await using client = connect();
    const tools = await client.listTools();
    const call = { id: "c1", function: { name: "mcp_shop_work", arguments: '{"fail":true}' } };
    const { content } = await dispatch(client, tools, call);
    expect(content).toContain("the disk is full");
    expect(content).toContain("may have taken effect");
  });

  it("is one call to an agent without a checkpointer, and to one of MultiServerMCPClient", async () => {
    await using client = connect();
    const model = () => callingModel({ name: "mcp_shop_work", args: { label: "plain", ask: ["sure"] } });
    const plain = createAgent({ model: model(), tools: await mcpTools(client) });
    const told = await plain.invoke({ messages: ["go"] });
    expect(told.messages.at(-1)?.text).toContain('"done":"plain","answers":{"sure"');
    const several = new MultiServerMCPClient({ mcpServers: { shop: { transport: "http", url: shop.url } } });
    try {
      const tools = await several.getTools();
      const work = tools.find(({ name }) => name.endsWith("work"));
      const outcome: unknown = await work?.invoke({ label: "several", ms: 200 });
      expect(JSON.stringify(outcome)).toContain("several");
    } finally {
      await several.close();
    }
    expect(Object.values(readKept(file).tasks).filter(({ args }) => args.label === "several")).toHaveLength(1);
  });
});
