import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { type Client, createClient } from "@tenon/client";
import type { Listening } from "@tenon/server";
import { createAgent } from "langchain";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  approvals,
  type InteractiveOptions,
  type ModelProvider,
  mcpMiddleware,
  mcpTools,
  resolveModel,
  runInteractive,
  toModelSchema,
} from "../src/index.ts";
import { anthropicEndpoint } from "./anthropic-endpoint.ts";
import { AWKWARD, awkwardShop } from "./awkward-shop.ts";
import { geminiEndpoint } from "./gemini-endpoint.ts";
import { type EndpointReply, openaiEndpoint } from "./openai-endpoint.ts";

const server = awkwardShop();
let listening: Listening;
let client: Client;
let level: string;
beforeAll(async () => {
  listening = await server.listen({ port: 0 });
  client = createClient({ servers: { shop: { url: listening.url } } });
  level = (await client.listTools()).find((tool) => tool.wireName.startsWith("admin"))?.name ?? "";
});
afterAll(async () => {
  await client.close();
  await listening.close(10);
  await server.close();
});

interface Case {
  readonly spec: string;
  readonly provider?: ModelProvider;
  start(script: readonly EndpointReply[]): Promise<AsyncDisposable & { url: string; bodies: () => unknown[] }>;
}

const openai = (flavour: "openai" | "deepseek") => async (script: readonly EndpointReply[]) => {
  const endpoint = await openaiEndpoint(script, flavour);
  return Object.assign(endpoint, { url: endpoint.baseUrl, bodies: () => endpoint.requests });
};
const cases: readonly Case[] = [
  { spec: "openai:gpt-4.1-mini", start: openai("openai") },
  { spec: "deepseek:deepseek-chat", start: openai("deepseek") },
  {
    spec: "anthropic:claude-sonnet-4-5",
    provider: "anthropic",
    start: async (script) => {
      const endpoint = await anthropicEndpoint(script);
      return Object.assign(endpoint, { url: endpoint.origin, bodies: () => endpoint.asked.map(({ body }) => body) });
    },
  },
  {
    spec: "google-genai:gemini-2.5-flash",
    provider: "gemini",
    start: async (script) => {
      const endpoint = await geminiEndpoint(script);
      return Object.assign(endpoint, { url: endpoint.origin, bodies: () => endpoint.asked.map(({ body }) => body) });
    },
  },
];

/** Awkward arguments, an error, a rejected call and an empty answer in one turn. */
const script = (): EndpointReply[] => [
  {
    calls: [
      { id: "call_1", name: "mcp_shop_optional", args: { names: ["x"], n: null } },
      { id: "call_2", name: "mcp_shop_optional", args: { n: "x" } },
      { id: "call_3", name: "mcp_shop_either", args: {} },
      { id: "call_4", name: "mcp_shop_shape", args: { shape: { kind: "circle", r: 1 } } },
      { id: "call_5", name: level, args: { level: "2", bag: '{"a":1}' } },
      { id: "call_6", name: "mcp_shop_broken", args: {} },
      { id: "call_7", name: "mcp_shop_drop", args: {} },
      { id: "call_8", name: "mcp_shop_silent", args: {} },
      { id: "call_9", name: "mcp_shop_picture", args: {} },
    ],
  },
  { text: "All done." },
];

async function agentFor(model: BaseChatModel, provider: ModelProvider | undefined) {
  const tools = await mcpTools(client, provider ? { provider } : {});
  return createAgent({
    model,
    tools,
    middleware: [mcpMiddleware(), approvals(tools, { "shop/drop": true }, { derive: false })],
    checkpointer: new MemorySaver(),
  });
}

const reject: InteractiveOptions["ask"] = (question) =>
  question.kind === "approval" ? { decisions: question.actions.map(() => ({ type: "reject" as const })) } : undefined;

function answers(messages: readonly BaseMessage[]): string[] {
  return messages.filter((item) => ToolMessage.isInstance(item)).map((item) => `${item.status} ${item.text}`);
}

describe.each(cases)("$spec with a server whose schemas are awkward", ({ spec, provider, start }) => {
  const expected = [
    'success {"names":["x"],"n":null}',
    expect.stringMatching(/^error The arguments do not fit tool "optional".*\n- n: must be/),
    expect.stringMatching(/^error The arguments do not fit tool "either".*\n- arguments: needs "a" or "b"/),
    'success {"shape":{"kind":"circle","r":1}}',
    'success {"level":2,"bag":{"a":1}}',
    "error the printer is on fire",
    expect.stringMatching(/^error The person rejected this call/),
    "success (no output)",
    "success [image, image/png, 3 bytes]",
  ];

  it("streams, and every call has its answer", async () => {
    await using endpoint = await start(script());
    const model = await resolveModel(spec, { baseUrl: endpoint.url, apiKey: "sk-test" });
    const agent = await agentFor(model, provider);
    const deltas: string[] = [];
    const result = await runInteractive(agent, "go", {
      threadId: "t",
      ask: reject,
      onEvent: (event) => event.type === "text" && deltas.push(event.delta),
    });
    expect(result.reply).toBe("All done.");
    expect(deltas.join("")).toBe("All done.");
    expect(answers(result.messages)).toEqual(expect.arrayContaining(expected));
    expect(answers(result.messages)).toHaveLength(expected.length);
    expect(endpoint.bodies()).toHaveLength(2);
  });

  it("works without streaming, tools without arguments included", async () => {
    await using endpoint = await start([
      { calls: [{ id: "c1", name: "mcp_shop_nothing", args: {} }] },
      { text: "Fine." },
    ]);
    const model = await resolveModel(spec, { baseUrl: endpoint.url, apiKey: "sk-test" });
    const tools = await mcpTools(client, provider ? { provider } : {});
    const agent = createAgent({ model, tools, middleware: [mcpMiddleware()] });
    const result = await agent.invoke({ messages: [{ role: "user", content: "go" }] });
    expect(result.messages.at(-1)?.text).toBe("Fine.");
    expect(answers(result.messages)).toEqual(["success {}"]);
  });
});

describe("a policy judges what would be sent", () => {
  it.each(["anthropic", "gemini"] as const)("%s: names and numbers as the server wants them", async (provider) => {
    const [name = ""] = Object.keys(toModelSchema(AWKWARD.chinese, provider).properties as object);
    const args = { [name]: "A1", amount: "700" };
    const turns: EndpointReply[] = [{ calls: [{ id: "c1", name: "mcp_shop_chinese", args }] }, { text: "ok" }];
    const spec = cases.find((item) => item.provider === provider);
    await using endpoint = await spec?.start(turns);
    const model = await resolveModel(spec?.spec ?? "", { baseUrl: endpoint?.url ?? "", apiKey: "k" });
    const tools = await mcpTools(client, { provider });
    const large = (given: Readonly<Record<string, unknown>>) =>
      given.订单号 === "A1" && typeof given.amount === "number" && given.amount >= 500;
    const policy = { "shop/chinese": { when: large } };
    const middleware = [mcpMiddleware(), approvals(tools, policy, { derive: false })];
    const agent = createAgent({ model, tools, middleware, checkpointer: new MemorySaver() });
    const asked: unknown[] = [];
    const result = await runInteractive(agent, "go", {
      threadId: "t",
      ask: (question) => {
        if (question.kind !== "approval") return undefined;
        asked.push(question.actions[0]?.args);
        const edited = { name: "mcp_shop_chinese", args: { 订单号: "A2", amount: 1 } };
        return { decisions: [{ type: "edit", editedAction: edited }] };
      },
    });
    expect(asked).toEqual([{ 订单号: "A1", amount: 700 }]);
    expect(answers(result.messages)).toEqual(['success {"订单号":"A2","amount":1}']);
  });
});

describe("what the server said reaches the model", () => {
  it("type, items and null as they are, a choice at the top in words", async () => {
    await using endpoint = await openaiEndpoint([{ text: "ok" }]);
    const model = await resolveModel("openai:gpt-4.1-mini", { baseUrl: endpoint.baseUrl, apiKey: "k" });
    await createAgent({ model, tools: await mcpTools(client) }).invoke({ messages: [{ role: "user", content: "x" }] });
    const sent = Object.fromEntries(
      (endpoint.requests[0]?.tools ?? []).map((tool) => [tool.function.name, tool.function.parameters]),
    );
    expect(sent.mcp_shop_optional?.properties).toEqual(AWKWARD.optional?.properties);
    expect(sent.mcp_shop_shape?.properties).toEqual(AWKWARD.shape?.properties);
    expect(sent.mcp_shop_either).toEqual({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "string" } },
      description: "At least one of these must be given: (a) or (b).",
    });
  });

  it("the fakes refuse what the services refuse", async () => {
    await using gemini = await geminiEndpoint([{ text: "ok" }]);
    const model = await resolveModel("google-genai:gemini-2.5-flash", { baseUrl: gemini.origin, apiKey: "k" });
    const agent = createAgent({ model, tools: await mcpTools(client) }); // without provider: "gemini"
    await expect(agent.invoke({ messages: [{ role: "user", content: "x" }] })).rejects.toThrow(/function_declarations/);
  });
});
