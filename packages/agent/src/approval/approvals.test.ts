import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, fakeModel, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type ScriptedClient, type ScriptedTool, scriptedClient } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import { type ApprovalPolicy, approvals, mcpMiddleware, mcpTools, openQuestions, type Question } from "../index.ts";

const schema = {
  type: "object",
  properties: { id: { type: "string" }, amount: { type: "number" } },
  required: ["id"],
};
const run: ScriptedTool["run"] = ({ tool, args }) => ({ text: `${tool} ${args.id} ${args.amount ?? ""}`.trim() });
const tools = {
  refund: { schema, annotations: { destructiveHint: true }, run },
  notify: { schema, annotations: { openWorldHint: true }, run },
  peek: { schema, annotations: { destructiveHint: true, readOnlyHint: true }, run },
  plain: { schema, run },
} satisfies Record<string, ScriptedTool>;

const call = (tool: keyof typeof tools, id = tool as string, amount?: number) => ({
  name: `mcp_shop_${tool}`,
  args: { id, ...(amount !== undefined && { amount }) },
});
const config = { configurable: { thread_id: "t" } };
const go = { messages: [new HumanMessage("go")] };

async function setUp(
  calls: Parameters<typeof callingModel>,
  policy?: ApprovalPolicy,
  options?: Parameters<typeof approvals>[2],
) {
  const client = scriptedClient(tools);
  const bound = await mcpTools(client);
  const model = callingModel(...calls);
  const agent = createAgent({
    model,
    tools: bound,
    middleware: [mcpMiddleware(), approvals(bound, policy, options)],
    checkpointer: new MemorySaver(),
  });
  const started = await agent.invoke(go, config);
  const open = async () => (await openQuestions(agent, "t"))[0] as Extract<Question, { kind: "approval" }> | undefined;
  const decide = async (...decisions: unknown[]) => {
    const question = await open();
    return agent.invoke(new Command({ resume: { [question!.id]: { decisions } } }), config);
  };
  return { agent, client, model, started, open, decide };
}

const ran = (client: ScriptedClient) => client.sent.map((leg) => leg.tool);
const approve = { type: "approve" };

describe("which calls are asked about", () => {
  it("by annotations where the policy is silent: destructive or open-world, unless read-only", async () => {
    const { open } = await setUp([call("refund"), call("notify"), call("peek"), call("plain")]);
    expect((await open())?.actions.map((action) => action.tool)).toEqual(["refund", "notify"]);
  });

  it("none by annotations when derivation is off", async () => {
    const { started } = await setUp([call("refund"), call("notify")], {}, { derive: false });
    expect(started.messages.at(-1)?.text).toBe("done: success=refund refund | success=notify notify");
  });

  it("by the policy, under the server's name or the local one", async () => {
    const { open } = await setUp([call("refund"), call("plain"), call("peek")], {
      "shop/refund": false,
      mcp_shop_plain: true,
      "shop/peek": { decisions: ["approve"], description: ({ id }) => `Peek at ${id}?` },
    });
    const question = await open();
    expect(question?.actions.map((action) => [action.tool, action.description, action.decisions])).toEqual([
      ["plain", "The agent wants to run plain of server shop.", ["approve", "edit", "reject", "respond"]],
      ["peek", "Peek at peek?", ["approve"]],
    ]);
  });

  it("by the arguments", async () => {
    const when = (args: Readonly<Record<string, unknown>>) => Number(args.amount) >= 500;
    const { open } = await setUp([call("refund", "a", 499), call("refund", "b", 500)], { "shop/refund": { when } });
    expect((await open())?.actions.map((action) => action.args.id)).toEqual(["b"]);
  });

  it("and what was asked stays decided when the rule changes its mind", async () => {
    let asks = true;
    const { decide, client } = await setUp([call("refund")], { "shop/refund": { when: () => asks } });
    asks = false;
    await decide({ type: "reject" });
    expect(ran(client)).toEqual([]);
  });

  it("whatever a run's context says", async () => {
    const client = scriptedClient(tools);
    const bound = await mcpTools(client);
    const agent = createAgent({
      model: callingModel(call("refund")),
      tools: bound,
      middleware: [approvals(bound)],
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(go, { ...config, context: { interruptOn: {}, derive: false } as never });
    expect(await openQuestions(agent, "t")).toHaveLength(1);
  });
});

describe("the payload", () => {
  it("is LangChain's, with ids and the call's origin", async () => {
    const { started } = await setUp([call("refund", "o1", 5)], { "shop/refund": { decisions: ["approve", "reject"] } });
    const [interrupt] = (started as unknown as { __interrupt__: Array<{ value: Record<string, unknown> }> })
      .__interrupt__;
    expect(interrupt?.value).toEqual({
      type: "approval",
      approvalId: expect.stringMatching(/:0$/),
      askedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      actionRequests: [
        {
          name: "mcp_shop_refund",
          args: { id: "o1", amount: 5 },
          description: "The agent wants to run refund of server shop.",
          server: "shop",
          tool: "refund",
          toolCallId: "offline_1_0",
        },
      ],
      reviewConfigs: [{ actionName: "mcp_shop_refund", allowedDecisions: ["approve", "reject"] }],
    });
  });
});

describe("decisions", () => {
  it("reject one of two: the approved and the unasked sibling run, every call is answered", async () => {
    const { decide, client } = await setUp([call("refund", "a"), call("plain", "p"), call("refund", "b")]);
    const result = await decide({ type: "reject", message: "too much" }, approve);
    expect(client.sent.map((leg) => leg.args.id).sort()).toEqual(["b", "p"]);
    const answers = result.messages.filter((message) => ToolMessage.isInstance(message));
    expect(answers).toHaveLength(3);
    const rejected = answers.find((message) => message.tool_call_id === "offline_1_0");
    expect(rejected).toMatchObject({ status: "error" });
    expect(rejected?.text).toBe("The person rejected this call; it was not carried out. Reason: too much");
  });

  it("reject all: the model is asked again", async () => {
    const { decide, client, model } = await setUp([call("refund"), call("notify")]);
    const result = await decide({ type: "reject" }, { type: "reject" });
    expect(ran(client)).toEqual([]);
    expect(model.turns).toHaveLength(2);
    expect(result.messages.at(-1)?.text).toContain("done: error=The person rejected");
  });

  it("respond answers for the tool", async () => {
    const { decide, client } = await setUp([call("refund")]);
    const result = await decide({ type: "respond", message: "already refunded" });
    expect(ran(client)).toEqual([]);
    expect(result.messages.at(-1)?.text).toBe("done: success=already refunded");
  });

  it("edit changes the arguments the tool gets and the history shows", async () => {
    const { decide, client } = await setUp([call("refund", "o1", 900)]);
    const args = { id: "o1", amount: 90 };
    const result = await decide({ type: "edit", editedAction: { name: "mcp_shop_refund", args } });
    expect(client.sent[0]?.args).toEqual(args);
    expect(result.messages.find((message) => AIMessage.isInstance(message))?.tool_calls?.[0]?.args).toEqual(args);
  });

  it("edit reaches providers that keep calls in the content", async () => {
    const client = scriptedClient(tools);
    const bound = await mcpTools(client);
    const model = fakeModel()
      .respond(
        new AIMessage({
          content: [
            { type: "text", text: "ok" },
            { type: "tool_use", id: "c1", name: "mcp_shop_refund", input: { id: "a", amount: 9 } },
          ],
          additional_kwargs: { tool_calls: [{ id: "c1", type: "function", function: { name: "x", arguments: "{}" } }] },
          tool_calls: [{ id: "c1", name: "mcp_shop_refund", args: { id: "a", amount: 9 } }],
        }),
      )
      .respond(new AIMessage("end"));
    const agent = createAgent({ model, tools: bound, middleware: [approvals(bound)], checkpointer: new MemorySaver() });
    await agent.invoke(go, config);
    const [question] = await openQuestions(agent, "t");
    const decisions = [{ type: "edit", editedAction: { args: { id: "a", amount: 1 } } }];
    const result = await agent.invoke(new Command({ resume: { [question!.id]: { decisions } } }), config);
    const message = result.messages.find((item) => AIMessage.isInstance(item));
    expect(message?.content).toContainEqual(
      expect.objectContaining({ type: "tool_use", input: { id: "a", amount: 1 } }),
    );
    expect(message?.additional_kwargs.tool_calls).toBeUndefined();
    expect(client.sent[0]?.args).toEqual({ id: "a", amount: 1 });
  });
});

describe("answers that cannot be used are asked for again", () => {
  const edit = (args: unknown, name = "mcp_shop_refund") => ({ type: "edit", editedAction: { name, args } });
  it.each([
    ["nothing", undefined, "not understood"],
    ["text", "yes", "not understood"],
    ["too few", { decisions: [] }, "1 actions wait for a decision, 0 came"],
    ["an unknown word", { decisions: [{ type: "ok" }] }, '"ok" is not allowed'],
    ["a decision that is not allowed", { decisions: [{ type: "respond", message: "x" }] }, "not allowed"],
    ["an edit without arguments", { decisions: [{ type: "edit" }] }, "edit needs editedAction"],
    [
      "an edit that does not fit",
      { decisions: [edit({ amount: "x" })] },
      'id: required, but missing; amount: must be a number, got "x"',
    ],
    ["an edit of the name", { decisions: [edit({ id: "a" }, "mcp_shop_plain")] }, "not the tool"],
    ["the id of another approval", { approvalId: "x", decisions: [approve] }, "another approval"],
  ])("after %s", async (_name, value, error) => {
    const { agent, client, open, decide } = await setUp([call("refund")], {
      "shop/refund": { decisions: ["approve", "edit", "reject"] },
    });
    const first = await open();
    await agent.invoke(new Command({ resume: { [first!.id]: value } }), config);
    const second = await open();
    expect(second?.error).toContain(error);
    expect(ran(client)).toEqual([]);
    const result = await decide(approve);
    expect(result.messages.at(-1)?.text).toBe("done: success=refund refund");
  });
});

describe("a policy that cannot be meant", () => {
  it("is refused with the nearest name", async () => {
    const bound = await mcpTools(scriptedClient(tools));
    expect(() => approvals(bound, { "shop/refnd": true })).toThrow('did you mean "shop/refund"');
    expect(() => approvals(bound, { "shop/refund": true, mcp_shop_refund: false })).toThrow("name the same tool");
    // @ts-expect-error not a decision
    expect(() => approvals(bound, { "shop/refund": { decisions: ["aprove"] } })).toThrow('did you mean "approve"');
    expect(() => approvals(bound, { "shop/refund": { decisions: [] } })).toThrow("allows no decision");
    // @ts-expect-error not an option
    expect(() => approvals(bound, {}, { derived: false })).toThrow('did you mean "derive"');
  });
});

describe("without a checkpointer", () => {
  it("nothing runs unapproved", async () => {
    const client = scriptedClient(tools);
    const bound = await mcpTools(client);
    const agent = createAgent({ model: callingModel(call("refund")), tools: bound, middleware: [approvals(bound)] });
    await expect(agent.invoke(go)).rejects.toMatchObject({ message: expect.stringContaining("checkpointer") });
    expect(ran(client)).toEqual([]);
  });
});

describe("local tools", () => {
  it("can be approved by name, edits checked by their Zod schema", async () => {
    const local = new DynamicStructuredTool({
      name: "wire_money",
      description: "wires",
      schema: z.object({ amount: z.number() }),
      func: async ({ amount }) => `wired ${amount}`,
    });
    const agent = createAgent({
      model: callingModel({ name: "wire_money", args: { amount: 5 } }),
      tools: [local],
      middleware: [approvals([local], { wire_money: true })],
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(go, config);
    const resume = async (args: unknown) => {
      const [question] = await openQuestions(agent, "t");
      const decisions = [{ type: "edit", editedAction: { name: "wire_money", args } }];
      return agent.invoke(new Command({ resume: { [question!.id]: { decisions } } }), config);
    };
    await resume({ amount: "x" });
    const [question] = await openQuestions(agent, "t");
    expect(question?.error).toContain("amount");
    expect(question?.kind === "approval" && question.actions[0]?.schema).toMatchObject({ type: "object" });
    expect((await resume({ amount: 7 })).messages.at(-1)?.text).toBe("done: success=wired 7");
  });
});
