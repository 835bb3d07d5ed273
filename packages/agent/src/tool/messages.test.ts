import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { TenonError } from "@tenon/core";
import { createAgent, type ToolMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { scriptedClient } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import { type AgentInterceptor, mcpMiddleware, mcpTools, runInteractive, toolMessageOf } from "../index.ts";

const stateSchema = new StateSchema({
  audit: new ReducedValue(
    z.array(z.string()).default(() => []),
    { reducer: (lines: string[], added: string[]) => [...lines, ...added] },
  ),
});

/** Writes every call down in the state and keeps what the tool answered. */
const audit: AgentInterceptor = async (request, next) => {
  const answer = (line: string, outcome: Parameters<typeof toolMessageOf>[1]) =>
    new Command({ update: { messages: [toolMessageOf(request, outcome)], audit: [line] } });
  try {
    const outcome = await next(request);
    return "isError" in outcome ? answer(`${request.name} ${outcome.isError}`, outcome) : outcome;
  } catch (error) {
    if (!(error instanceof TenonError)) throw error;
    return answer(`${request.name} ${error.code}`, error);
  }
};

async function agentWith(...calls: Parameters<typeof callingModel>) {
  const client = scriptedClient(
    {
      look: { run: () => ({ text: "found", structured: { n: 1 } }) },
      fail: { run: () => ({ text: "not allowed", isError: true }) },
      lose: {
        run: () => {
          throw new TenonError("connection lost", { code: "lost", maybeExecuted: true });
        },
      },
    },
    { interceptors: [audit] },
  );
  const agent = createAgent({
    model: callingModel(...calls),
    tools: await mcpTools(client),
    middleware: [mcpMiddleware()],
    stateSchema,
    checkpointer: new MemorySaver(),
  });
  return (text: string) => runInteractive(agent, text, { threadId: "t", ask: () => undefined });
}

describe("a Command with the message of an outcome", () => {
  it("keeps status, text, artifact and the warning that the call may have run", async () => {
    const say = await agentWith({ name: "mcp_shop_look" }, { name: "mcp_shop_fail" }, { name: "mcp_shop_lose" });
    const { messages, values } = await say("go");
    const tools = messages.filter((message): message is ToolMessage => message.type === "tool");
    expect(tools.map(({ name, status, text }) => [name, status, text])).toEqual([
      ["mcp_shop_look", "success", "found"],
      ["mcp_shop_fail", "error", "not allowed"],
      ["mcp_shop_lose", "error", expect.stringContaining("connection lost The call may have taken effect")],
    ]);
    expect(tools[0]?.artifact).toMatchObject({ structured: { n: 1 } });
    expect(values.audit).toEqual(["look false", "fail true", "lose lost"]);
  });

  it("is refused outside an agent, where no message waits", () => {
    const request = { server: "shop", name: "look", runtime: {} };
    expect(() => toolMessageOf(request, new TenonError("x", { code: "x" }))).toThrow("was not made by an agent");
  });
});

describe("a state channel with a reducer", () => {
  it("is not doubled by the next turn of the thread", async () => {
    const say = await agentWith({ name: "mcp_shop_look" });
    await say("one");
    expect((await say("plain two")).values.audit).toEqual(["look false"]);
    expect((await say("plain three")).values.audit).toEqual(["look false"]);
  });
});
