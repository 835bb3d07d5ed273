import { AIMessage, type AIMessageChunk } from "@langchain/core/messages";
import { createAgent, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { scriptedClient } from "../../test/scripted-client.ts";
import { mcpTools, OfflineModel, type OfflineTurn } from "../index.ts";

const add = {
  schema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
  run: ({ args }: { args: Record<string, unknown> }) => ({ text: `sum ${args.a}`, structured: { sum: args.a } }),
};

async function chat(model: OfflineModel, text: string) {
  const agent = createAgent({ model, tools: await mcpTools(scriptedClient({ add })), systemPrompt: "Be brief." });
  return (await agent.invoke({ messages: [new HumanMessage(text)] })).messages;
}

describe("the offline model", () => {
  it("says that it is one", async () => {
    const last = (await chat(new OfflineModel(), "hello")).at(-1);
    expect(last?.text).toContain("offline stand-in");
    expect(last?.text).toContain("mcp_shop_add");
    expect(last?.response_metadata).toMatchObject({ model_provider: "tenon-offline", model_name: "tenon-offline" });
    expect(last?.additional_kwargs.offline).toBe(true);
  });

  it("follows the application's rules, which see text, system, tools, results and step", async () => {
    const turns: OfflineTurn[] = [];
    const model = new OfflineModel({
      reply: (turn) => {
        turns.push(turn);
        return turn.step === 0
          ? {
              text: "looking",
              calls: [
                { name: "mcp_shop_add", args: { a: 1 } },
                { name: "mcp_shop_add", args: { a: 2 } },
              ],
            }
          : { text: turn.results.map((result) => result.text).join("+") };
      },
    });
    const messages = await chat(model, " add ");
    expect(messages.at(-1)?.text).toBe("sum 1+sum 2");
    expect(turns[0]).toMatchObject({ text: "add", system: "Be brief.", step: 0, results: [] });
    expect(turns[0]?.tools).toEqual([{ name: "mcp_shop_add", description: "Tool add", schema: add.schema }]);
    expect(turns[1]).toMatchObject({ step: 1 });
    expect(turns[1]?.results[1]).toMatchObject({
      name: "mcp_shop_add",
      text: "sum 2",
      status: "success",
      artifact: { structured: { sum: 2 } },
      toolCallId: "offline_1_1",
      args: { a: 2 },
    });
  });

  it("never repeats a tool-call id, even when the history was shortened", async () => {
    const model = new OfflineModel({ reply: () => ({ calls: [{ name: "x", args: {} }] }) });
    const first = await model.invoke([new HumanMessage("a")]);
    const again = await model.invoke([new AIMessage({ content: "", tool_calls: first.tool_calls ?? [] })]);
    expect([first.tool_calls?.[0]?.id, again.tool_calls?.[0]?.id]).toEqual(["offline_1_0", "offline_1_0_1"]);
  });

  it("streams in small pieces that add up to one message", async () => {
    const model = new OfflineModel({
      reply: () => ({ text: "one two three", calls: [{ name: "x", args: { a: 1 } }] }),
    });
    const chunks: AIMessageChunk[] = [];
    for await (const chunk of await model.stream("go")) chunks.push(chunk);
    expect(chunks.length).toBeGreaterThan(2);
    const whole = chunks.reduce((sum, chunk) => sum.concat(chunk));
    expect(whole.text).toBe("one two three");
    expect(whole.tool_calls).toMatchObject([{ name: "x", args: { a: 1 }, id: "offline_1_0" }]);
    expect(whole.response_metadata).toMatchObject({ model_name: "tenon-offline" });
    expect(whole.additional_kwargs.offline).toBe(true);
  });
});

describe("/tool", () => {
  it("calls a tool and replies with its text", async () => {
    expect((await chat(new OfflineModel(), '/tool mcp_shop_add {"a": 4}')).at(-1)?.text).toBe("sum 4");
    expect((await chat(new OfflineModel(), "/tool mcp_shop_add")).at(-1)?.text).toContain("a: required, but missing");
  });

  it.each([
    ["/tool", "Usage: /tool name {json}. Tools: mcp_shop_add."],
    ["/tool mcp_shop_ad {}", 'did you mean "mcp_shop_add"?'],
    ["/tool other", "tools: mcp_shop_add."],
    ["/tool mcp_shop_add {a", "are not JSON"],
    ["/tool mcp_shop_add [1]", "must be a JSON object"],
  ])("%s explains itself", async (text, expected) => {
    expect((await chat(new OfflineModel(), text)).at(-1)?.text).toContain(expected);
  });
});
