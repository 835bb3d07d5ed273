import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import { type BaseCheckpointSaver, Command, MemorySaver } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { META } from "@tenon/core";
import { createAgent, createMiddleware, HumanMessage, toolRetryMiddleware } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import {
  type AgentInterceptor,
  mcpMiddleware,
  mcpTools,
  openQuestions,
  type Question,
  resumeValue,
} from "../src/index.ts";
import { expiredState, type ScriptedClient, type ScriptedTool, scriptedClient, yesNo } from "./scripted-client.ts";
import { callingModel } from "./scripted-model.ts";

/** Asks at a price that rises with every asking: a yes must be bound to the price the person saw. */
function payTool(): ScriptedTool {
  let price = 5;
  return {
    schema: { type: "object", properties: { to: { type: "string" } } },
    run: ({ args, answers, state }) => {
      if (!answers) {
        price += 5;
        return { ask: { confirm: yesNo(`Pay ${price} to ${args.to}?`) }, state: String(price) };
      }
      const answer = answers.confirm;
      return answer?.action === "accept" && answer.content?.ok === true
        ? { text: `paid ${state} to ${args.to}` }
        : { text: "not paid", isError: true };
    },
  };
}

const pay = { name: "mcp_shop_pay", args: { to: "bob" } };
const config = { configurable: { thread_id: "t" } };
const go = { messages: [new HumanMessage("go")] };
const yes = { answers: { confirm: { action: "accept" as const, content: { ok: true } } } };
const resuming = (question: Question, value: unknown = resumeValue(question, yes)) =>
  new Command({ resume: { [question.id]: value } });

async function makeAgent(
  client: ScriptedClient,
  checkpointer: BaseCheckpointSaver | undefined,
  options: {
    calls?: Parameters<typeof callingModel>;
    middleware?: Parameters<typeof createAgent>[0]["middleware"];
  } = {},
) {
  return createAgent({
    model: callingModel(...(options.calls ?? [pay])),
    tools: await mcpTools(client),
    middleware: [mcpMiddleware(), ...(options.middleware ?? [])],
    ...(checkpointer && { checkpointer }),
  });
}

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe("a question in the middle of a tool call", () => {
  it("survives a restart: another process answers it, and each leg is sent exactly once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tenon-agent-"));
    folders.push(folder);
    const file = join(folder, "threads.sqlite");
    const saver = SqliteSaver.fromConnString(file);
    const first = scriptedClient({ pay: payTool() });
    await (await makeAgent(first, saver)).invoke(go, config);
    saver.db.close();

    const again = SqliteSaver.fromConnString(file);
    const second = scriptedClient({ pay: payTool() });
    const agent = await makeAgent(second, again);
    const [question] = await openQuestions(agent, "t");
    expect(question).toMatchObject({
      kind: "elicitation",
      server: "shop",
      tool: "pay",
      questions: { confirm: { message: "Pay 10 to bob?" } },
    });
    const result = await agent.invoke(resuming(question!), config);
    again.db.close();
    expect(result.messages.at(-1)?.text).toBe("done: success=paid 10 to bob");
    expect([...first.sent, ...second.sent].map((leg) => leg.state ?? "asked")).toEqual(["asked", "10"]);
    const keys = [...first.sent, ...second.sent].map((leg) => leg.meta[META.idempotencyKey]);
    expect(keys[0]).toBeDefined();
    expect(keys[1]).toBe(keys[0]);
  });

  it.each([
    ["nonsense", () => ({ nonsense: 1 }), "not understood"],
    ["text", () => "yes", "not understood"],
    ["an id of another question", (id: string) => ({ elicitationId: `${id}x`, ...yes }), "another question"],
    ["no answer for the key", (id: string) => ({ elicitationId: id, answers: {} }), "cannot be used"],
    ["an unknown action", (id: string) => ({ elicitationId: id, answers: { confirm: { action: "ok" } } }), '"accept"'],
    [
      "a value of the wrong kind",
      (id: string) => ({ elicitationId: id, answers: { confirm: { action: "accept", content: { ok: "yes" } } } }),
      "ok",
    ],
    [
      "a missing value",
      (id: string) => ({ elicitationId: id, answers: { confirm: { action: "accept" } } }),
      "required",
    ],
  ])("is asked again after %s, and the thread stays usable", async (_name, answer, error) => {
    const client = scriptedClient({ pay: payTool() });
    const agent = await makeAgent(client, new MemorySaver());
    await agent.invoke(go, config);
    const [first] = await openQuestions(agent, "t");
    const id = first?.kind === "elicitation" ? first.elicitationId : "";
    await agent.invoke(resuming(first!, answer(id)), config);
    const [second] = await openQuestions(agent, "t");
    expect(second?.error).toContain(error);
    expect(second?.id).not.toBe(first?.id);
    // a late answer to the first asking must not count for the second
    await agent.invoke(resuming(first!), config);
    const [third] = await openQuestions(agent, "t");
    expect(third?.error).toContain("another question");
    const result = await agent.invoke(resuming(third!), config);
    expect(result.messages.at(-1)?.text).toBe("done: success=paid 10 to bob");
    expect(client.sent).toHaveLength(2);
  });

  it("answered twice is carried out once, and the second answer counts for nothing that comes later", async () => {
    const client = scriptedClient({ pay: payTool() });
    const agent = await makeAgent(client, new MemorySaver());
    await agent.invoke(go, config);
    const [question] = await openQuestions(agent, "t");
    await agent.invoke(resuming(question!), config);
    const again = await agent.invoke(resuming(question!), config);
    expect(again.messages.at(-1)?.text).toBe("done: success=paid 10 to bob");
    expect(client.sent).toHaveLength(2);
    await agent.invoke({ messages: [new HumanMessage("once more")] }, config);
    await agent.invoke(resuming(question!), config);
    expect(await openQuestions(agent, "t")).toMatchObject([{ questions: { confirm: { message: "Pay 15 to bob?" } } }]);
    expect(client.sent).toHaveLength(3);
  });

  it("declined is an answer like any other", async () => {
    const agent = await makeAgent(scriptedClient({ pay: payTool() }), new MemorySaver());
    await agent.invoke(go, config);
    const [question] = await openQuestions(agent, "t");
    const value = resumeValue(question!, { answers: { confirm: { action: "decline" } } });
    const result = await agent.invoke(resuming(question!, value), config);
    expect(result.messages.at(-1)?.text).toBe("done: error=not paid");
  });

  it("one plain yes answers only the question it names", async () => {
    const client = scriptedClient({ pay: payTool() });
    const calls = [pay, { name: "mcp_shop_pay", args: { to: "eve" } }];
    const agent = await makeAgent(client, new MemorySaver(), { calls });
    await agent.invoke(go, config);
    const questions = await openQuestions(agent, "t");
    expect(questions).toHaveLength(2);
    await agent.invoke(new Command({ resume: resumeValue(questions[0]!, yes) }), config);
    expect(await openQuestions(agent, "t")).toHaveLength(1);
    expect(client.sent.filter((leg) => leg.answers)).toHaveLength(1);
  });

  it("a finished sibling is not run again", async () => {
    let sides = 0;
    const side: ScriptedTool = { run: () => ({ text: `side ${++sides}` }) };
    const client = scriptedClient({ pay: payTool(), side });
    const agent = await makeAgent(client, new MemorySaver(), { calls: [pay, { name: "mcp_shop_side" }] });
    await agent.invoke(go, config);
    const [question] = await openQuestions(agent, "t");
    const result = await agent.invoke(resuming(question!), config);
    expect(result.messages.at(-1)?.text).toBe("done: success=paid 10 to bob | success=side 1");
    expect(sides).toBe(1);
  });

  it("without a checkpointer the model is told what is missing", async () => {
    const client = scriptedClient({ pay: payTool() });
    const result = await (await makeAgent(client, undefined)).invoke(go);
    const message = result.messages.find((item) => ToolMessage.isInstance(item));
    expect(message).toMatchObject({ status: "error", artifact: { error: { code: "no_checkpointer" } } });
    expect(message?.text).toContain("Give the agent a checkpointer");
  });

  it("is asked anew when the server's state has expired, and the old yes is not reused", async () => {
    let expired = false;
    const tool = payTool();
    const client = scriptedClient({
      pay: {
        ...tool,
        run: (sent) => {
          if (sent.answers && !expired) {
            expired = true;
            throw expiredState();
          }
          return tool.run(sent);
        },
      },
    });
    const agent = await makeAgent(client, new MemorySaver());
    await agent.invoke(go, config);
    const [first] = await openQuestions(agent, "t");
    await agent.invoke(resuming(first!), config);
    const [second] = await openQuestions(agent, "t");
    expect(second).toMatchObject({ questions: { confirm: { message: "Pay 15 to bob?" } } });
    expect(second?.error).toContain("no longer accepts");
    expect([first, second].map((question) => question?.kind === "elicitation" && question.restarted)).toEqual([
      undefined,
      1,
    ]);
    const result = await agent.invoke(resuming(second!), config);
    expect(result.messages.at(-1)?.text).toBe("done: success=paid 15 to bob");
    expect(client.sent).toHaveLength(4);
  });

  it("answered elsewhere with another answer is not called again: the model is told to look", async () => {
    const tool = payTool();
    const client = scriptedClient({
      pay: {
        ...tool,
        run: (sent) => {
          if (sent.answers) throw expiredState("answered");
          return tool.run(sent);
        },
      },
    });
    const agent = await makeAgent(client, new MemorySaver());
    await agent.invoke(go, config);
    const [question] = await openQuestions(agent, "t");
    const result = await agent.invoke(resuming(question!), config);
    const message = result.messages.find((item) => ToolMessage.isInstance(item));
    expect(message).toMatchObject({ status: "error", artifact: { error: { code: "answered", maybeExecuted: true } } });
    expect(message?.text).toContain("Do not call it again");
    expect(await openQuestions(agent, "t")).toEqual([]);
    expect(client.sent).toHaveLength(2);
  });

  it("gives up after three expired states", async () => {
    const tool = payTool();
    const client = scriptedClient({
      pay: {
        ...tool,
        run: (sent) => {
          if (sent.answers) throw expiredState("invalid_request_state");
          return tool.run(sent);
        },
      },
    });
    const agent = await makeAgent(client, new MemorySaver());
    await agent.invoke(go, config);
    for (let i = 0; i < 4; i += 1) {
      const [question] = await openQuestions(agent, "t");
      await agent.invoke(resuming(question!), config);
    }
    expect(await openQuestions(agent, "t")).toEqual([]);
    expect(client.sent.filter((leg) => !leg.answers)).toHaveLength(4);
  });
});

describe("an interrupt cannot be swallowed", () => {
  const catching: AgentInterceptor = async (request, next) => {
    try {
      return await next(request);
    } catch {
      return { content: [{ type: "text", text: "swallowed" }], isError: false, meta: {}, raw: { content: [] } };
    }
  };
  const retrying: AgentInterceptor = async (request, next) => {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      try {
        return await next(request);
      } catch {
        // once more
      }
    }
    return next(request);
  };
  const naive = createMiddleware({
    name: "naive",
    wrapToolCall: async (request, handler) => {
      try {
        return await handler(request);
      } catch {
        return new ToolMessage({ content: "caught", tool_call_id: request.toolCall.id ?? "" });
      }
    },
  });
  const renaming = createMiddleware({
    name: "renaming",
    wrapToolCall: async (request, handler) => {
      try {
        return await handler(request);
      } catch (error) {
        throw new Error("something went wrong", { cause: error });
      }
    },
  });
  const retry = toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1 });

  it.each([
    ["an interceptor that catches", [catching], []],
    ["an interceptor that retries", [retrying], []],
    ["a middleware that catches", [], [naive]],
    ["a middleware that throws another error", [], [renaming]],
    ["a middleware that retries", [], [retry]],
  ])("by %s", async (_name, interceptors, middleware) => {
    const client = scriptedClient({ pay: payTool() }, { interceptors });
    const agent = await makeAgent(client, new MemorySaver(), { middleware });
    await agent.invoke(go, config);
    const questions = await openQuestions(agent, "t");
    expect(questions).toHaveLength(1);
    expect(client.sent).toHaveLength(1);
    const result = await agent.invoke(resuming(questions[0]!), config);
    expect(result.messages.at(-1)?.text).toBe("done: success=paid 10 to bob");
    expect(client.sent).toHaveLength(2);
  });
});
