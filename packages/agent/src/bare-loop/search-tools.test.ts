import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { type ScriptedTool, scriptedClient } from "../../test/scripted-client.ts";
import {
  estimateTokens,
  findTools,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  searchTools,
  withinBudget,
} from "../index.ts";
import { wordsOf } from "./search-tools.ts";

const tool = (name: string, description: string, ...parameters: string[]) => ({
  name,
  description,
  inputSchema: { type: "object", properties: Object.fromEntries(parameters.map((item) => [item, { type: "string" }])) },
});

const catalog = [
  tool("mcp_order_query_order", "Looks an order up", "order_id"),
  tool("mcp_order_process_refund", "Gives the money of an order back", "order_id", "reason"),
  tool("mcp_hr_getEmployeeBudget", "Budget of a department", "department"),
  tool("mcp_weather_forecast", "查询城市的天气预报", "城市"),
  tool("mcp_kb_search", "在知识库中搜索退款政策", "关键词"),
  ...Array.from({ length: 495 }, (_, at) => tool(`mcp_bulk_task_${at}`, `Runs batch job number ${at}`, "batch")),
];
const names = (query: string, limit = 3) => findTools(catalog, query, { limit }).map((item) => item.name);

describe("finding tools among 500", () => {
  it.each([
    ["refund an order", "mcp_order_process_refund"],
    ["money back", "mcp_order_process_refund"],
    ["employee budgets", "mcp_hr_getEmployeeBudget"],
    ["department", "mcp_hr_getEmployeeBudget"],
    ["batch job 321", "mcp_bulk_task_321"],
    ["明天的天气怎么样", "mcp_weather_forecast"],
    ["退款政策", "mcp_kb_search"],
    ["关键词", "mcp_kb_search"],
  ])("%s", (query, expected) => {
    expect(names(query)[0]).toBe(expected);
  });
  it("nothing where no word fits", () => {
    expect(names("quantum")).toEqual([]);
    expect(names("")).toEqual([]);
  });
  it("at most as many as wanted, in a stable order", () => {
    expect(names("batch", 4)).toEqual(names("batch", 8).slice(0, 4));
    expect(() => findTools(catalog, "x", { limit: 0 })).toThrow("whole number above 0");
  });
  it("words of names, camelCase and Chinese", () => {
    expect(wordsOf("getUserOrders order_id HTTP2Status 查订单 车")).toEqual([
      ..."get user order order id http2 status".split(" "),
      "查订",
      "订单",
      "车",
    ]);
  });
});

describe("what tools cost", () => {
  it("Chinese counts more, and a budget leaves out what does not fit", () => {
    expect(estimateTokens([tool("a", "天气预报")])).toBeGreaterThan(estimateTokens([tool("a", "text")]));
    const few = withinBudget(catalog, 400);
    expect(few.length).toBeGreaterThan(3);
    expect(few.length).toBeLessThan(40);
    expect(estimateTokens(few)).toBeLessThanOrEqual(400);
    expect(withinBudget([tool("big", "x".repeat(9_000)), tool("small", "")], 100).map((item) => item.name)).toEqual([
      "small",
    ]);
  });
});

describe("an agent with 500 tools", () => {
  const scripted = Object.fromEntries(
    Array.from({ length: 500 }, (_, at): [string, ScriptedTool] => [
      at === 250 ? "process_refund" : `task_${at}`,
      { schema: { type: "object", properties: { id: { type: "string" } } }, run: () => ({ text: `done ${at}` }) },
    ]),
  );

  async function agent(shown: string[][], options: Parameters<typeof searchTools>[1] = {}) {
    const tools = await mcpTools(scriptedClient(scripted));
    const model = new OfflineModel({
      reply: (turn) => {
        shown.push(turn.tools.map((item) => item.name).toSorted());
        if (turn.text === "again") return { text: "still here" };
        if (turn.step === 0) return { calls: [{ name: "search_tools", args: { query: "refund" } }] };
        if (turn.step === 1) return { calls: [{ name: "mcp_shop_process_refund", args: { id: "1" } }] };
        return { text: turn.results.map((result) => result.text).join(" | ") };
      },
    });
    return createAgent({
      model,
      tools,
      checkpointer: new MemorySaver(),
      middleware: [mcpMiddleware(), searchTools(tools, options)],
    });
  }
  const ask = (content: string) => ({ messages: [{ role: "user", content }] });

  it("sees the search, then what it found, also in the thread's next run and in no other thread", async () => {
    const shown: string[][] = [];
    const running = await agent(shown, { always: ["mcp_shop_task_7"] });
    const thread = { configurable: { thread_id: "a" } };
    const result = await running.invoke(ask("refund 1"), thread);
    expect(result.messages.at(-1)?.text).toContain("done 250");
    const before = ["mcp_shop_task_7", "search_tools"];
    const after = ["mcp_shop_process_refund", ...before];
    expect(shown).toEqual([before, after, after]);
    await running.invoke(ask("again"), thread);
    await running.invoke(ask("again"), { configurable: { thread_id: "b" } });
    expect(shown.slice(3)).toEqual([after, before]);
  });

  it("what was found stays within its budget", async () => {
    const shown: string[][] = [];
    const running = await agent(shown, { maxTokens: 1 });
    await running.invoke(ask("refund 1"), { configurable: { thread_id: "a" } });
    expect(shown[1]).toEqual(["search_tools"]);
  });

  it("mistakes in its options are errors", async () => {
    const tools = await mcpTools(scriptedClient(scripted));
    expect(() => searchTools(tools, { always: ["mcp_shop_tsk_7"] })).toThrow('did you mean "mcp_shop_task_7"');
    expect(() => searchTools(tools, { name: "mcp_shop_task_7" })).toThrow("choose another name");
    // @ts-expect-error a typing error
    expect(() => searchTools(tools, { limits: 3 })).toThrow('did you mean "limit"');
  });
});
