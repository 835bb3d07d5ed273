import { ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { createAgent, HumanMessage } from "langchain";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  type AgentInterceptor,
  type ApprovalOptions,
  type ApprovalPolicy,
  type ApprovalRecord,
  approvalOf,
  approvals,
  approvalsOf,
  invokeAgent,
  mcpMiddleware,
  mcpTools,
  openQuestions,
  type Question,
  resumeValue,
  runInteractive,
} from "../src/index.ts";
import { type ScriptedTool, scriptedClient, yesNo } from "./scripted-client.ts";
import { callingModel } from "./scripted-model.ts";

const HOUR = 3_600_000;
const MORNING = Date.parse("2026-05-04T08:00:00Z");
// only the clock: everything else runs as it is
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: MORNING });
});
afterEach(() => {
  vi.useRealTimers();
});

const schema = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const refund: ScriptedTool = {
  schema,
  annotations: { destructiveHint: true },
  run: ({ args }) => ({ text: `refunded ${args.id}` }),
};
const exchange: ScriptedTool = {
  schema: {
    type: "object",
    properties: { order: { type: "string" } },
    required: ["order"],
    additionalProperties: false,
  },
  run: ({ args }) => ({ text: `exchanged ${args.order}` }),
};
const config = { configurable: { thread_id: "t" } };
const go = { messages: [new HumanMessage("go")] };
const approve = { type: "approve" as const };
const call = { name: "mcp_shop_refund", args: { id: "o1" } };

const audited = new StateSchema({
  audit: new ReducedValue(
    z.array(z.string()).default(() => []),
    { reducer: (before: string[], more: string[]) => [...before, ...more] },
  ),
});

async function setUp({
  policy = {},
  options = {},
  interceptors = [],
  calls = [call],
  tool = refund,
}: {
  policy?: ApprovalPolicy;
  options?: ApprovalOptions;
  interceptors?: AgentInterceptor[];
  calls?: Parameters<typeof callingModel>;
  tool?: ScriptedTool;
} = {}) {
  const client = scriptedClient({ refund: tool, exchange }, { interceptors });
  const tools = await mcpTools(client);
  const agent = createAgent({
    model: callingModel(...calls),
    tools,
    middleware: [mcpMiddleware(), approvals(tools, policy, options)],
    stateSchema: audited,
    checkpointer: new MemorySaver(),
  });
  await invokeAgent(agent, go, config);
  const open = async () => {
    const [question] = await openQuestions(agent, "t");
    return question as Extract<Question, { kind: "approval" }> | undefined; // nothing else is asked first
  };
  const resume = async (answer: Parameters<typeof resumeValue>[1] | { raw: unknown }) => {
    const question = await open();
    if (!question) throw new Error("nothing is asked");
    const value = "raw" in answer ? answer.raw : resumeValue(question, answer);
    return invokeAgent(agent, new Command({ resume: { [question.id]: value } }), config);
  };
  return { agent, client, open, resume };
}

describe("an approval with a time to decide", () => {
  it("says when it was asked and how long it waits", async () => {
    const { open } = await setUp({ options: { ttlMs: HOUR } });
    expect(await open()).toMatchObject({ askedAt: "2026-05-04T08:00:00.000Z", expiresAt: "2026-05-04T09:00:00.000Z" });
  });

  it("is asked again when the answer comes late, with the reason and a new time", async () => {
    const { open, resume, client } = await setUp({ options: { ttlMs: HOUR } });
    vi.setSystemTime(MORNING + 2 * HOUR);
    await resume({ decisions: [approve] });
    expect(client.sent).toEqual([]);
    expect(await open()).toMatchObject({
      error: expect.stringContaining("too late"),
      askedAt: "2026-05-04T10:00:00.000Z",
      expiresAt: "2026-05-04T11:00:00.000Z",
    });
    vi.setSystemTime(MORNING + 2.5 * HOUR);
    const result = await resume({ decisions: [approve] });
    expect(result.messages.at(-1)?.text).toBe("done: success=refunded o1");
  });

  it("that was refused as late stays refused when a clock goes back", async () => {
    const { open, resume, client } = await setUp({ options: { ttlMs: HOUR } });
    vi.setSystemTime(MORNING + 2 * HOUR);
    await resume({ decisions: [approve] });
    vi.setSystemTime(MORNING);
    await resume({ raw: "nonsense" });
    expect((await open())?.error).toContain("not understood");
    expect(client.sent).toEqual([]);
  });

  it("has none unless one is given, and a wrong one is refused", async () => {
    const { open, resume } = await setUp();
    expect((await open())?.expiresAt).toBeUndefined();
    vi.setSystemTime(MORNING + 1000 * HOUR);
    expect((await resume({ decisions: [approve] })).messages.at(-1)?.text).toContain("refunded");
    for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER]) {
      expect(() => approvals([], {}, { ttlMs })).toThrow(expect.objectContaining({ code: "invalid_option" }));
    }
  });
});

describe("who decided, and when", () => {
  it("is kept in the thread, on the tool's message, and shown to interceptors", async () => {
    const seen: Array<ApprovalRecord | undefined> = [];
    const look: AgentInterceptor = (request, next) => {
      seen.push(approvalOf(request.runtime));
      return next(request);
    };
    const { resume } = await setUp({ interceptors: [look] });
    vi.setSystemTime(MORNING + HOUR);
    const result = await resume({ decisions: [approve], decidedBy: "mia@shop.example" });
    const record = {
      toolCallId: "offline_1_0",
      name: "mcp_shop_refund",
      server: "shop",
      tool: "refund",
      decision: "approve",
      decidedBy: "mia@shop.example",
      askedAt: "2026-05-04T08:00:00.000Z",
      decidedAt: "2026-05-04T09:00:00.000Z",
    };
    expect(approvalsOf(result)).toEqual([record]);
    expect(seen).toEqual([record]);
    expect(result.messages.find((message) => ToolMessage.isInstance(message))?.metadata).toMatchObject({
      approval: record,
      mcp: { server: "shop" },
    });
  });

  it("is on the message of a call that an interceptor answered with a Command", async () => {
    const update: AgentInterceptor = async (request, next) => {
      await next(request);
      return new Command({ update: { audit: ["ran"] } });
    };
    const { resume } = await setUp({ interceptors: [update] });
    const result = await resume({ decisions: [approve], decidedBy: { id: "7", name: "Mia" } });
    expect(result.messages.find((message) => ToolMessage.isInstance(message))?.metadata).toMatchObject({
      approval: { decidedBy: { id: "7", name: "Mia" } },
    });
  });

  it("goes into a channel of the agent's own state", async () => {
    const { resume } = await setUp({
      calls: [
        call,
        { name: "mcp_shop_refund", args: { id: "o2" } },
        { name: "mcp_shop_exchange", args: { order: "o3" } },
      ],
      options: {
        audit: (records) => ({ audit: records.map((one) => `${one.decidedBy} ${one.decision} ${one.message}`) }),
      },
    });
    const result = await resume({ decisions: [{ type: "reject", message: "no" }, approve], decidedBy: "mia" });
    expect(result.audit).toEqual(["mia reject no", "mia approve undefined"]);
    expect(result.messages.at(-1)?.text).toContain("success=refunded o2 | success=exchanged o3");
    const rejected = result.messages.find(
      (message) => ToolMessage.isInstance(message) && message.tool_call_id === "offline_1_0",
    );
    expect(rejected).toMatchObject({
      status: "error",
      metadata: { approval: { decision: "reject", decidedBy: "mia" } },
    });
  });

  it("must be a name or texts, else it is asked again", async () => {
    const { open, resume, client } = await setUp();
    await resume({ raw: { decisions: [approve], decidedBy: 7 } });
    expect((await open())?.error).toContain("who decided");
    expect(client.sent).toEqual([]);
  });
});

describe("a decision that is sent twice", () => {
  it("is carried out once, and approves nothing of a later turn", async () => {
    const { agent, client, open, resume } = await setUp();
    const question = await open();
    await resume({ decisions: [approve] });
    const resumeAgain = new Command({ resume: { [question?.id ?? ""]: { decisions: [approve] } } });
    await invokeAgent(agent, resumeAgain, config);
    expect(client.sent).toHaveLength(1);
    await invokeAgent(agent, { messages: [new HumanMessage("once more")] }, config);
    await invokeAgent(agent, resumeAgain, config);
    expect(client.sent).toHaveLength(1);
    expect(await open()).toBeDefined();
  });
});

describe("an edit that names another tool", () => {
  const edited = (name: string, args: Record<string, unknown>) => ({
    decisions: [{ type: "edit" as const, editedAction: { name, args } }],
  });

  it("is refused unless the rule allows that tool", async () => {
    const { open, resume } = await setUp({ policy: { "shop/refund": true } });
    await resume(edited("mcp_shop_exchange", { order: "o1" }));
    expect((await open())?.error).toContain("not the tool");
  });

  it("is checked by that tool's schema, runs that tool, and the record keeps what was proposed", async () => {
    const { open, resume, client } = await setUp({ policy: { "shop/refund": { renameTo: ["shop/exchange"] } } });
    await resume(edited("mcp_shop_exchange", { id: "o1" }));
    expect((await open())?.error).toContain("order: required, but missing");
    const result = await resume(edited("shop/exchange", { order: "o1" }));
    expect(result.messages.at(-1)?.text).toBe("done: success=exchanged o1");
    expect(client.sent.map((leg) => leg.tool)).toEqual(["exchange"]);
    expect(approvalsOf(result)).toMatchObject([
      { decision: "edit", proposed: { name: "mcp_shop_refund", args: { id: "o1" } } },
    ]);
  });

  it("can only be allowed for a tool that exists", async () => {
    const tools = await mcpTools(scriptedClient({ refund, exchange }));
    expect(() => approvals(tools, { "shop/refund": { renameTo: ["shop/exchagne"] } })).toThrow(
      'did you mean "shop/exchange"',
    );
  });
});

describe("an approval and a question of the server on one call", () => {
  it("are asked one after the other, and the approval is still known when the call runs", async () => {
    const seen: Array<string | undefined> = [];
    const look: AgentInterceptor = (request, next) => {
      seen.push(String(approvalOf(request.runtime)?.decidedBy));
      return next(request);
    };
    const tool: ScriptedTool = {
      ...refund,
      run: (sent) => (sent.answers ? refund.run(sent) : { ask: { why: yesNo("Sure?") }, state: "s" }),
    };
    const { agent } = await setUp({ tool, interceptors: [look] });
    const kinds: string[] = [];
    const result = await runInteractive(agent, undefined, {
      threadId: "t",
      ask: (question) => {
        kinds.push(question.kind);
        return question.kind === "approval"
          ? { decisions: [approve], decidedBy: "mia" }
          : { answers: { why: { action: "accept", content: { ok: true } } } };
      },
    });
    expect(kinds).toEqual(["approval", "elicitation"]);
    expect(result.reply).toBe("done: success=refunded o1");
    expect(seen).toEqual(["mia", "mia"]);
  });
});
