import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, fakeModel, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { approvalOf, approvals, approvalsOf, mcpMiddleware, mcpTools, openQuestions } from "../src/index.ts";
import { scriptedClient } from "./scripted-client.ts";

// Ids of calls are the model's, or those of whoever stands between: some endpoints number the calls of each turn from zero, some
// leave ids out, and a model that is talked into it may repeat one. A decision about one call must never touch another.

const schema = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const config = { configurable: { thread_id: "t" } };

interface Call {
  name: string;
  args: Record<string, unknown>;
  id?: string;
}
const call = (tool: string, order: string, id?: string): Call => ({
  name: `mcp_shop_${tool}`,
  args: { id: order },
  ...(id !== undefined && { id }),
});

async function setUp(...turns: Call[][]) {
  const approved: unknown[] = [];
  const run = ({ tool, args }: { tool: string; args: Record<string, unknown> }) => ({ text: `${tool} ${args.id}` });
  const client = scriptedClient({
    refund: { schema, annotations: { destructiveHint: true }, run },
    plain: { schema, run },
  });
  const bound = await mcpTools(client);
  const model = fakeModel();
  for (const turn of turns) model.respondWithTools(turn as never);
  model.respond(new (await import("langchain")).AIMessage("done"));
  const agent = createAgent({
    model,
    tools: bound,
    middleware: [mcpMiddleware(), approvals(bound)],
    checkpointer: new MemorySaver(),
  });
  await agent.invoke({ messages: [new HumanMessage("go")] }, config);
  const decide = async (...decisions: unknown[]) => {
    const [question] = await openQuestions(agent, "t");
    return agent.invoke(new Command({ resume: { [question?.id ?? ""]: { decisions } } }), config);
  };
  const sent = () => client.sent.map(({ tool, args }) => `${tool} ${args.id}`);
  return { agent, decide, sent, approved };
}
const edit = (order: string) => ({ type: "edit", editedAction: { args: { id: order } } });
const approve = { type: "approve" };

describe.each([
  ["the same id", "c1"],
  ["no id", undefined],
  ["an empty id", ""],
])("two calls of one turn with %s", (_, id) => {
  it("are decided apart: an edit of one does not change the other", async () => {
    const on = await setUp([call("refund", "A", id), call("refund", "B", id)]);
    await on.decide(approve, edit("C"));
    expect(on.sent().sort()).toEqual(["refund A", "refund C"]);
  });
  it("are decided apart: what needs no approval is not made what was edited", async () => {
    const on = await setUp([call("plain", "A", id), call("refund", "B", id)]);
    await on.decide(edit("C"));
    expect(on.sent().sort()).toEqual(["plain A", "refund C"]);
  });
  it("are decided apart: a rejected one does not take the approved one along", async () => {
    const on = await setUp([call("refund", "A", id), call("refund", "B", id)]);
    const { messages } = await on.decide(approve, { type: "reject" });
    expect(on.sent()).toEqual(["refund A"]);
    expect(messages.filter((message) => message.type === "tool").map(({ text }) => text)).toEqual([
      expect.stringContaining("rejected"),
      "refund A",
    ]);
    expect(approvalsOf({ messages }).map(({ decision }) => decision)).toEqual(["approve", "reject"]);
  });
});

describe("a later call with the id of an earlier one", () => {
  it("is asked about and made like any other", async () => {
    const on = await setUp([call("refund", "A", "c1")], [call("refund", "B", "c1")], [call("refund", "B", "c1")]);
    await on.decide(approve);
    expect(on.sent()).toEqual(["refund A"]);
    await on.decide(approve);
    await on.decide(approve);
    expect(on.sent()).toEqual(["refund A", "refund B", "refund B"]);
    const keys = on.sent().length;
    expect(keys).toBe(3);
  });
  it("is not taken for approved because that was", async () => {
    const on = await setUp([call("refund", "A", "c1")], [call("plain", "B", "c1")]);
    const { messages } = await on.decide({ ...approve });
    const at = messages.findLastIndex(
      (message) => message.type === "ai" && (message as { tool_calls?: unknown[] }).tool_calls?.length,
    );
    expect(approvalOf({ state: { messages: messages.slice(0, at + 1) }, toolCallId: "c1" })).toBeUndefined();
  });
});
