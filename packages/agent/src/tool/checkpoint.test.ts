import { DynamicStructuredTool } from "@langchain/core/tools";
import { Command, interrupt, MemorySaver, MessagesAnnotation, StateGraph, task } from "@langchain/langgraph";
import { createAgent, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { callingModel } from "../../test/scripted-model.ts";
import { canPause, type Execution, insideCreateAgent, isGuarded, markGuarded, remember } from "./checkpoint.ts";

const go = { messages: [new HumanMessage("go")] };
const config = { configurable: { thread_id: "t" } };

async function insideTool(work: (execution: Execution) => unknown, saved = true) {
  const probe = new DynamicStructuredTool({
    name: "probe",
    description: "probe",
    schema: z.object({}),
    func: async (_args, _manager, execution) => String(await work(execution ?? {})),
  });
  const agent = createAgent({
    model: callingModel({ name: "probe" }),
    tools: [probe],
    ...(saved && { checkpointer: new MemorySaver() }),
  });
  const first = await agent.invoke(go, config);
  return { agent, first };
}

describe("what this package takes from LangGraph's run configuration", () => {
  it("says whether a run is saved, and that it is createAgent's", async () => {
    const seen: unknown[] = [];
    await insideTool((execution) => seen.push([canPause(execution), insideCreateAgent(execution)]));
    await insideTool((execution) => seen.push([canPause(execution), insideCreateAgent(execution)]), false);
    expect(seen).toEqual([
      [true, true],
      [false, true],
    ]);
    expect(canPause({})).toBe(false);
  });

  it("is absent from createAgent's marks in a graph of one's own", async () => {
    const seen: boolean[] = [];
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("step", (_state, execution) => {
        seen.push(insideCreateAgent(execution));
        return {};
      })
      .addEdge("__start__", "step")
      .compile();
    await graph.invoke(go);
    expect(seen).toEqual([false]);
  });

  it("remembers work over a pause, also outside the run's async context", async () => {
    let worked = 0;
    const { agent } = await insideTool(async (execution) => {
      const value = await remember(execution, "work", async () => ++worked);
      return `${value} ${interrupt("?")}`;
    });
    const result = await agent.invoke(new Command({ resume: "yes" }), config);
    expect(result.messages.at(-1)?.text).toBe("done: success=1 yes");
    expect(worked).toBe(1);
    expect(task).toBeTypeOf("function");
  });

  it("has a scratchpad per execution of a task", async () => {
    const seen: boolean[] = [];
    const { agent } = await insideTool((execution) => {
      seen.push(isGuarded(execution, "c"));
      markGuarded(execution, "c");
      seen.push(isGuarded(execution, "c"));
      return interrupt("?");
    });
    await agent.invoke(new Command({ resume: "yes" }), config);
    expect(seen).toEqual([false, true, false, true]);
  });
});
