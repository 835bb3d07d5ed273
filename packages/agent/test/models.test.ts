import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it, vi } from "vitest";
import { mcpMiddleware, mcpTools, OfflineModel, type RunEvent, resolveModel, runInteractive } from "../src/index.ts";
import { type EndpointReply, openaiEndpoint } from "./openai-endpoint.ts";
import { scriptedClient } from "./scripted-client.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const add = {
  schema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  run: ({ args }: { args: Record<string, unknown> }) => ({ text: String(Number(args.a) + Number(args.b)) }),
};
const script: EndpointReply[] = [
  {
    calls: [
      { id: "call_1", name: "mcp_shop_add", args: { a: 1, b: 2 } },
      { id: "call_2", name: "mcp_shop_add", args: { a: 10, b: "x" } },
    ],
  },
  { text: "The sums are 3 and none." },
];

describe("real provider clients against a strict local endpoint", () => {
  it.each([
    ["openai-compatible:any", "openai"],
    ["openai:gpt-4.1-mini", "openai"],
    ["deepseek:deepseek-chat", "deepseek"],
  ] as const)("%s streams, calls two tools in one turn and gets what it can read", async (spec, flavour) => {
    await using endpoint = await openaiEndpoint(script, flavour);
    const model = await resolveModel(spec, { baseUrl: endpoint.baseUrl, apiKey: "sk-test" });
    const agent = createAgent({
      model,
      tools: await mcpTools(scriptedClient({ add })),
      middleware: [mcpMiddleware()],
      checkpointer: new MemorySaver(),
    });
    const events: RunEvent[] = [];
    const result = await runInteractive(agent, "sum", {
      threadId: "t",
      ask: () => undefined,
      onEvent: (event) => events.push(event),
    });
    expect(result.reply).toBe("The sums are 3 and none.");
    expect(events.filter((event) => event.type === "text").map((event) => event.delta)).toHaveLength(6);
    expect(events.filter((event) => event.type === "tool-end")).toEqual([
      expect.objectContaining({ toolCallId: expect.any(String), status: expect.any(String) }),
      expect.objectContaining({ toolCallId: expect.any(String), status: expect.any(String) }),
    ]);
    expect(endpoint.requests.map((request) => request.stream)).toEqual([true, true]);
    expect(endpoint.requests[0]?.tools?.[0]?.function.parameters).toEqual(add.schema);
    expect(endpoint.requests[1]?.messages?.filter((message) => message.role === "tool")).toEqual(
      [
        { role: "tool", content: "3", tool_call_id: "call_1", name: expect.anything() },
        {
          role: "tool",
          content: expect.stringMatching(/^The arguments do not fit: b: must be a number, got /),
          tool_call_id: "call_2",
          name: expect.anything(),
        },
      ].map(({ name: _name, ...message }) => expect.objectContaining(message)),
    );
    expect(endpoint.keys[0]).toBe("Bearer sk-test");
  });

  it("works without streaming", async () => {
    await using endpoint = await openaiEndpoint(script);
    const model = await resolveModel("openai-compatible:any", { baseUrl: endpoint.baseUrl });
    const agent = createAgent({ model, tools: await mcpTools(scriptedClient({ add })) });
    const result = await agent.invoke({ messages: [{ role: "user", content: "sum" }] });
    expect(result.messages.at(-1)?.text).toBe("The sums are 3 and none.");
    expect(endpoint.requests[0]?.stream ?? false).toBe(false);
    expect(endpoint.keys[0]).toBe("Bearer none");
  });

  it("takes the endpoint and its key from the environment", async () => {
    await using endpoint = await openaiEndpoint([{ text: "hi" }]);
    vi.stubEnv("TENON_MODEL_BASE_URL", endpoint.baseUrl);
    vi.stubEnv("TENON_MODEL_API_KEY", "sk-env");
    const model = await resolveModel("openai-compatible:any", { temperature: 0 });
    expect((await model.invoke("hello")).text).toBe("hi");
    expect(endpoint.keys[0]).toBe("Bearer sk-env");
    expect(endpoint.requests[0]).toMatchObject({ model: "any", temperature: 0 });
  });

  it("tries again after a passing failure", async () => {
    await using endpoint = await openaiEndpoint([{ status: 503 }, { text: "hi" }]);
    const model = await resolveModel("openai-compatible:any", { baseUrl: endpoint.baseUrl });
    expect((await model.invoke("hello")).text).toBe("hi");
    expect(endpoint.requests).toHaveLength(2);
  });
});

describe("a model that cannot be had", () => {
  it("offline needs nothing", async () => {
    expect(await resolveModel("offline")).toBeInstanceOf(OfflineModel);
  });

  it.each([
    ["opnai:gpt-4.1", "unknown_model", 'did you mean "openai"?'],
    ["nobody:x", "unknown_model", "known: offline, openai-compatible, openai"],
    ["gpt-4.1", "unknown_model", 'no model provider "gpt-4.1"'],
    ["openai:", "unknown_model", 'expected "openai:<model>"'],
    ["groq:llama", "missing_package", "npm install @langchain/groq"],
    ["openai:gpt-4.1", "missing_key", "set OPENAI_API_KEY"],
    ["deepseek:deepseek-chat", "missing_key", "set DEEPSEEK_API_KEY"],
    ["openai-compatible:x", "missing_base_url", "TENON_MODEL_BASE_URL"],
  ])("%s: %s", async (spec, code, text) => {
    for (const name of ["OPENAI_API_KEY", "DEEPSEEK_API_KEY", "TENON_MODEL_BASE_URL"]) vi.stubEnv(name, "");
    await expect(resolveModel(spec)).rejects.toMatchObject({
      name: "ConfigError",
      code,
      message: expect.stringContaining(text),
    });
  });

  it("an option that does not apply is refused", async () => {
    await expect(resolveModel("bedrock:claude", { baseUrl: "http://127.0.0.1:1" })).rejects.toThrow("does not apply");
    // @ts-expect-error a typing error
    await expect(resolveModel("offline", { baseURL: "x" })).rejects.toThrow('did you mean "baseUrl"');
  });
});
