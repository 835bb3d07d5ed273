import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { Command, MemorySaver, ReducedValue, Send, StateSchema } from "@langchain/langgraph";
import { ConnectionError } from "@tenon/core";
import { createAgent, HumanMessage } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type ScriptedTool, scriptedClient } from "../../test/scripted-client.ts";
import { callingModel } from "../../test/scripted-model.ts";
import { type AgentInterceptor, type McpMiddlewareOptions, mcpMiddleware, mcpTools } from "../index.ts";

const echo: ScriptedTool = { run: ({ args }) => ({ text: `echo ${args.n ?? ""}`.trim() }) };
const calls = (count: number) => Array.from({ length: count }, (_, n) => ({ name: "mcp_shop_echo", args: { n } }));
const config = { configurable: { thread_id: "t" } };
const say = (text: string) => ({ messages: [new HumanMessage(text)] });

const auditState = new StateSchema({
  auditLog: new ReducedValue(
    z.array(z.string()).default(() => []),
    { reducer: (log: string[], more: string[]) => [...log, ...more] },
  ),
});

async function agentWith(interceptor: AgentInterceptor, count = 1, options: McpMiddlewareOptions = {}) {
  const client = scriptedClient({ echo }, { interceptors: [interceptor] });
  const model = callingModel(...calls(count));
  const agent = createAgent({
    model,
    tools: await mcpTools(client),
    middleware: [mcpMiddleware(options)],
    stateSchema: auditState,
    checkpointer: new MemorySaver(),
  });
  return { agent, client, model };
}

const answer = (id: string | undefined, content: string) => new ToolMessage({ content, tool_call_id: id ?? "" });

describe("a Command with goto __end__", () => {
  it("ends the run, and the next turn is a normal one", async () => {
    const { agent, model } = await agentWith(async (request) => {
      return new Command({ update: { messages: [answer(request.runtime.toolCallId, "bye")] }, goto: "__end__" });
    });
    const ended = await agent.invoke(say("first"), config);
    expect(ended.messages.at(-1)).toMatchObject({ content: "bye", status: "success" });
    expect(ended.messages.at(-1)?.additional_kwargs).toEqual({});
    expect(model.turns).toHaveLength(1);
    const next = await agent.invoke(say("plain second"), config);
    expect(next.messages.at(-1)?.text).toBe("done: ");
    expect(model.turns).toHaveLength(2);
  });

  it("ends that run only, also when the next one starts without a message", async () => {
    const { agent, model } = await agentWith(async () => new Command({ goto: "__end__" }));
    await agent.invoke(say("first"), config);
    await agent.invoke({ messages: [] }, config);
    expect(model.turns).toHaveLength(2);
  });

  it("lets the calls of the same turn finish, also when several end the run", async () => {
    const { agent, client, model } = await agentWith(async (request, next) => {
      await next(request);
      return new Command({ update: { auditLog: [`${request.args.n}`] }, goto: ["__end__"] });
    }, 3);
    const ended = await agent.invoke(say("go"), config);
    expect(ended.auditLog).toEqual(["0", "1", "2"]);
    expect(client.sent).toHaveLength(3);
    expect(model.turns).toHaveLength(1);
    expect(ended.messages.filter((message) => ToolMessage.isInstance(message))).toHaveLength(3);
  });
});

describe("Commands that only update", () => {
  it("merge when they come from parallel calls, and get the message they lack", async () => {
    const { agent } = await agentWith(async (request, next) => {
      await next(request);
      return request.args.n === 1
        ? new Command({ update: { auditLog: [`n${request.args.n}`] } })
        : new Command({
            update: { auditLog: [`n${request.args.n}`], messages: [answer(request.runtime.toolCallId, "own")] },
          });
    }, 3);
    const result = await agent.invoke(say("go"), config);
    expect(result.auditLog).toEqual(["n0", "n1", "n2"]);
    expect(result.messages.at(-1)?.text).toBe("done: success=own | success=Done. | success=own");
  });
});

describe("a goto to another step", () => {
  it.each([
    ["a node", "elsewhere"],
    ["a Send", new Send("elsewhere", {})],
  ])("to %s is an error message", async (_name, goto) => {
    const { agent } = await agentWith(async () => new Command({ goto }));
    const message = (await agent.invoke(say("go"), config)).messages.find((item) => ToolMessage.isInstance(item));
    expect(message).toMatchObject({ status: "error" });
    expect(message?.text).toContain('only "__end__" works');
  });

  it("ends the run with a typed error when errors are thrown", async () => {
    const { agent } = await agentWith(async () => new Command({ goto: "elsewhere" }), 1, { toolErrors: "throw" });
    await expect(agent.invoke(say("go"), config)).rejects.toMatchObject({ code: "goto_unsupported" });
  });
});

describe("errors", () => {
  const broken: AgentInterceptor = async () => {
    throw new TypeError("a bug");
  };
  const lost: AgentInterceptor = async () => {
    throw new ConnectionError("gone", { code: "lost" });
  };

  it("of any kind become messages by default", async () => {
    const { agent } = await agentWith(broken);
    const result = await agent.invoke(say("go"), config);
    expect(result.messages.at(-1)?.text).toBe("done: error=mcp_shop_echo failed: a bug");
  });

  it("end the run on request, ours and others", async () => {
    const ours = await agentWith(lost, 1, { toolErrors: "throw" });
    await expect(ours.agent.invoke(say("go"), config)).rejects.toMatchObject({
      message: "gone",
      name: "ConnectionError",
    });
    const other = await agentWith(broken, 1, { toolErrors: "throw" });
    await expect(other.agent.invoke(say("go"), config)).rejects.toThrow("a bug");
  });

  it("of other tools' arguments show no stack trace", async () => {
    const local = new DynamicStructuredTool({
      name: "local",
      description: "local",
      schema: z.object({ n: z.number() }),
      func: async () => "ok",
    });
    const agent = createAgent({
      model: callingModel({ name: "local", args: { n: "x" } }),
      tools: [local],
      middleware: [mcpMiddleware()],
    });
    const message = (await agent.invoke(say("go"))).messages.find((item) => ToolMessage.isInstance(item));
    expect(message?.text).toMatch(/^Invalid arguments for local: /);
    expect(message?.text).not.toMatch(/\bat \/|node_modules|file:/);
  });

  it("a typing error in the options is found", () => {
    // @ts-expect-error unknown option
    expect(() => mcpMiddleware({ toolError: "throw" })).toThrow('did you mean "toolErrors"');
    // @ts-expect-error a value there is not
    expect(() => mcpMiddleware({ toolErrors: "raise" })).toThrow('must be "return" or "throw", got "raise"');
  });
});
