import { type Checkpoint, Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { createAgent, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type ScriptedTool, scriptedClient, yesNo } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import {
  type AgentInterceptor,
  invokeAgent,
  mcpMiddleware,
  mcpTools,
  openQuestions,
  resumeValue,
  runInteractive,
  streamAgent,
} from "../index.ts";

const log = new StateSchema({
  auditLog: new ReducedValue(
    z.array(z.string()).default(() => []),
    { reducer: (before: string[], more: string[]) => [...before, ...more] },
  ),
});
const config = { configurable: { thread_id: "t" } };
const say = (text: string) => ({ messages: [new HumanMessage(text)] });
const audit: AgentInterceptor = async (request, next) => {
  await next(request);
  return new Command({ update: { auditLog: [request.name] } });
};
const echo: ScriptedTool = { run: () => ({ text: "echo" }) };
const pay: ScriptedTool = {
  run: ({ answers }) => (answers ? { text: "paid" } : { ask: { confirm: yesNo("Pay?") }, state: "s" }),
};

async function startAgent(tool: "echo" | "pay", saver?: MemorySaver) {
  const client = scriptedClient({ echo, pay }, { interceptors: [audit] });
  return createAgent({
    model: callingModel({ name: `mcp_shop_${tool}` }),
    tools: await mcpTools(client),
    middleware: [mcpMiddleware()],
    stateSchema: log,
    ...(saver && { checkpointer: saver }),
  });
}

describe("state with a reducer", () => {
  it("grows by what each turn adds, however the agent is called", async () => {
    const agent = await startAgent("echo", new MemorySaver());
    await invokeAgent(agent, say("one"), config);
    const second = await invokeAgent(agent, say("two"), config);
    expect(second.auditLog).toEqual(["echo", "echo"]);
    for await (const _ of await streamAgent(agent, say("three"), config)) {
      // only run it
    }
    const fourth = await runInteractive(agent, "four", { threadId: "t", ask: () => undefined });
    expect(fourth.values.auditLog).toEqual(["echo", "echo", "echo", "echo"]);
  });

  it("doubles with agent.invoke, which is why there is another way", async () => {
    const agent = await startAgent("echo", new MemorySaver());
    await agent.invoke(say("one"), config);
    expect((await agent.invoke(say("two"), config)).auditLog).toEqual(["echo", "echo", "echo"]);
  });

  it("is kept when a question is answered", async () => {
    const agent = await startAgent("pay", new MemorySaver());
    await invokeAgent(agent, say("one"), config);
    const [question] = await openQuestions(agent, "t");
    if (!question) throw new Error("no question");
    const answer = { answers: { confirm: { action: "accept" as const, content: { ok: true } } } };
    const resume = new Command({ resume: { [question.id]: resumeValue(question, answer) } });
    expect((await invokeAgent(agent, resume, config)).auditLog).toEqual(["pay"]);
  });

  it("and calls are protected from input that comes while a question is open", async () => {
    const agent = await startAgent("pay", new MemorySaver());
    await invokeAgent(agent, say("one"), config);
    await expect(invokeAgent(agent, say("two"), config)).rejects.toMatchObject({
      code: "thread_waits",
      message: expect.stringMatching(/a question is open.*openQuestions\(\)/),
    });
    await expect(streamAgent(agent, say("two"), config)).rejects.toMatchObject({ code: "thread_waits" });
    expect(await openQuestions(agent, "t")).toHaveLength(1);
  });

  it("needs no checkpointer", async () => {
    const agent = await startAgent("echo");
    expect((await invokeAgent(agent, say("one"))).auditLog).toEqual(["echo"]);
    expect((await invokeAgent(agent, say("one"), config)).auditLog).toEqual(["echo"]);
  });

  it("is not touched when the saver cannot say what the thread has", async () => {
    let reads = 0;
    class FailingSaver extends MemorySaver {
      override async getTuple(...args: Parameters<MemorySaver["getTuple"]>): ReturnType<MemorySaver["getTuple"]> {
        reads += 1;
        if (reads === failAt) throw new Error("the database went away");
        return super.getTuple(...args);
      }
    }
    let failAt = 0;
    const agent = await startAgent("echo", new FailingSaver());
    await invokeAgent(agent, say("one"), config);
    failAt = reads + 1;
    await expect(invokeAgent(agent, say("two"), config)).rejects.toThrow("the database went away");
    expect((await invokeAgent(agent, say("two"), config)).auditLog).toEqual(["echo", "echo"]);
  });
});

describe("what a tool does", () => {
  /** A saver that takes its time. */
  class SlowSaver extends MemorySaver {
    stored = 0;
    override async put(...args: Parameters<MemorySaver["put"]>): ReturnType<MemorySaver["put"]> {
      await new Promise((resolve) => setTimeout(resolve, 60));
      const [, checkpoint]: [unknown, Checkpoint, ...unknown[]] = args;
      const done = await super.put(...args);
      const { messages } = checkpoint.channel_values;
      this.stored = Math.max(this.stored, Array.isArray(messages) ? messages.length : 0);
      return done;
    }
  }

  it.each(["invokeAgent", "runInteractive"])("happens only after the call is saved, with %s", async (how) => {
    const saver = new SlowSaver();
    const seen: number[] = [];
    const client = scriptedClient({
      echo: {
        run: () => {
          seen.push(saver.stored);
          return { text: "echo" };
        },
      },
    });
    const agent = createAgent({
      model: callingModel({ name: "mcp_shop_echo" }),
      tools: await mcpTools(client),
      middleware: [mcpMiddleware()],
      checkpointer: saver,
    });
    if (how === "invokeAgent") await invokeAgent(agent, say("go"), config);
    else await runInteractive(agent, "go", { threadId: "t", ask: () => undefined });
    expect(seen).toEqual([2]); // the person's message and the model's with the call
  });
});
