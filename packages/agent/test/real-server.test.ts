import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { createClient } from "@tenon/client";
import { createServer, type ServerOptions, ToolError } from "@tenon/server";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentInterceptor,
  type Answer,
  approvals,
  type InteractiveOptions,
  mcpMiddleware,
  mcpTools,
  type Question,
  type RunEvent,
  runInteractive,
} from "../src/index.ts";
import { callingModel } from "./scripted-model.ts";

/** What the server's handlers did: effects that must happen once. */
let effects: string[] = [];
const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  effects = [];
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startShop(options: Partial<ServerOptions> = {}, port = 0) {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => {}, ...options });
  server.tool(
    "refund",
    {
      description: "Refunds an order",
      input: z.object({ order: z.string(), amount: z.number().positive() }),
      annotations: { destructiveHint: true },
    },
    async ({ order, amount }, ctx) => {
      const price = await ctx.step("quote", () => effects.push(`quote ${order}`));
      const answer = await ctx.elicit(
        `Refund ${amount} for ${order}? (quote ${price})`,
        z.object({ reason: z.string() }),
      );
      if (answer.action !== "accept") throw new ToolError("the person said no");
      await ctx.progress(1, 1, "paying");
      await ctx.log.info("paid");
      effects.push(`paid ${order} ${amount} ${answer.data.reason} ${ctx.idempotencyKey}`);
      return `refunded ${amount} for ${order}: ${answer.data.reason}`;
    },
  );
  server.tool("look", { annotations: { readOnlyHint: true }, output: z.object({ n: z.number() }) }, () => ({ n: 3 }));
  const listening = await server.listen({ port });
  cleanups.push(async () => {
    await listening.close(10);
    await server.close();
  });
  return listening;
}

async function startAgent(
  url: string,
  checkpointer: BaseCheckpointSaver,
  calls: Parameters<typeof callingModel>,
  interceptors: AgentInterceptor[] = [],
) {
  const client = createClient({ servers: { shop: { url } }, elicitation: "interrupt", interceptors });
  cleanups.push(() => client.close());
  const tools = await mcpTools(client);
  const agent = createAgent({
    model: callingModel(...calls),
    tools,
    middleware: [mcpMiddleware(), approvals(tools)],
    checkpointer,
  });
  return (input: string | undefined, options: Partial<InteractiveOptions> = {}) =>
    runInteractive(agent, input, { threadId: "t", ask: () => undefined, ...options });
}

const refund = { name: "mcp_shop_refund", args: { order: "o1", amount: 700 } };
function answering(question: Question): Answer {
  if (question.kind === "approval") return { decisions: question.actions.map(() => ({ type: "approve" as const })) };
  const [key = ""] = Object.keys(question.questions);
  return { answers: { [key]: { action: "accept", content: { reason: "late" } } } };
}

describe("an agent with a real server over HTTP", () => {
  it("approves, asks, streams progress and log, and answers", async () => {
    const shop = await startShop();
    const drive = await startAgent(shop.url, new MemorySaver(), [refund, { name: "mcp_shop_look" }]);
    const events: RunEvent[] = [];
    const result = await drive("go", { ask: answering, onEvent: (event) => events.push(event) });
    expect(result.reply).toBe('done: success=refunded 700 for o1: late | success={"n":3}');
    expect(result.messages.find((message) => message.name === "mcp_shop_look")).toMatchObject({
      artifact: { structured: { n: 3 } },
    });
    expect(events.map((event) => event.type)).toEqual(
      expect.arrayContaining(["question", "progress", "log", "tool-end"]),
    );
    expect(effects.map((effect) => effect.split(" ")[0])).toEqual(["quote", "paid"]);
  });

  it("a question survives the agent's restart and the server's, and is answered once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tenon-agent-"));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "threads.sqlite");
    const stateKeys = [Buffer.alloc(32, 7).toString("base64url")];
    const first = SqliteSaver.fromConnString(file);
    const shop = await startShop({ stateKeys });
    const before = await startAgent(shop.url, first, [refund]);
    const approveOnly = (question: Question) => (question.kind === "approval" ? answering(question) : undefined);
    const paused = await before("go", { ask: approveOnly });
    expect(paused).toMatchObject({ status: "paused", questions: [{ kind: "elicitation", tool: "refund" }] });
    first.db.close();
    await shop.close(10);

    const again = await startShop({ stateKeys });
    const second = SqliteSaver.fromConnString(file);
    cleanups.push(() => second.db.close());
    const after = await startAgent(again.url, second, [refund]);
    const result = await after(undefined, { ask: answering });
    expect(result.reply).toBe("done: success=refunded 700 for o1: late");
    expect(effects.map((effect) => effect.split(" ").slice(0, 2).join(" "))).toEqual(["quote o1", "paid o1"]);
    expect(effects[1]).toMatch(/ [\w-]{43}$/);
  });

  it("a question that waited too long is asked again", async () => {
    const shop = await startShop({ questionTtlMs: 3_000 });
    const drive = await startAgent(shop.url, new MemorySaver(), [refund]);
    const errors: Array<string | undefined> = [];
    const result = await drive("go", {
      ask: async (question) => {
        if (question.kind === "elicitation") {
          errors.push(question.error);
          if (errors.length === 1) await new Promise((resolve) => setTimeout(resolve, 4_500));
        }
        return answering(question);
      },
    });
    expect(errors).toEqual([undefined, expect.stringContaining("no longer accepts")]);
    expect(result.reply).toBe("done: success=refunded 700 for o1: late");
    expect(effects.filter((effect) => effect.startsWith("paid"))).toHaveLength(1);
  });

  it("a question of a server that lost its keys is asked again", async () => {
    const saver = new MemorySaver();
    const shop = await startShop();
    const before = await startAgent(shop.url, saver, [refund]);
    await before("go", { ask: (question) => (question.kind === "approval" ? answering(question) : undefined) });
    const after = await startAgent((await startShop()).url, saver, [refund]);
    const errors: Array<string | undefined> = [];
    const result = await after(undefined, {
      ask: (question) => {
        errors.push(question.error);
        return answering(question);
      },
    });
    expect(errors).toEqual([undefined, expect.stringContaining("no longer accepts")]);
    expect(result.reply).toBe("done: success=refunded 700 for o1: late");
  });

  it("a server that is gone is a message to the model, not the end of the run", async () => {
    const shop = await startShop();
    const drive = await startAgent(shop.url, new MemorySaver(), [{ name: "mcp_shop_look" }]);
    await shop.close(10);
    const result = await drive("go");
    expect(result.status).toBe("done");
    expect(result.reply).toMatch(/^done: error=/);
  });

  it("a tool's error, wrong arguments and a swallowing interceptor behave as with any server", async () => {
    const shop = await startShop();
    const catching: AgentInterceptor = async (request, next) => {
      try {
        return await next(request);
      } catch {
        return next(request.with({ args: { order: "other", amount: 1 } }));
      }
    };
    const calls = [refund, { name: "mcp_shop_refund", args: { order: "o2", amount: -1 } }];
    const drive = await startAgent(shop.url, new MemorySaver(), calls, [catching]);
    const decline = (question: Question): Answer =>
      question.kind === "approval"
        ? answering(question)
        : { answers: Object.fromEntries(Object.keys(question.questions).map((key) => [key, { action: "decline" }])) };
    const result = await drive("go", { ask: decline });
    expect(result.reply).toMatch(
      /error=the person said no \| error=The arguments do not fit tool "refund" of server "shop"; .*\s- amount: must/,
    );
    expect(effects).toEqual(["quote o1"]);
  });
});

it("arguments are judged by the definition the server has now, not by the one the tools were made from", async () => {
  const shopWith = async (id: z.ZodType<unknown>, port: number) => {
    const server = createServer({ name: "shop", version: "1.0.0", cache: { "tools/list": { ttlMs: 0 } } });
    server.tool("find", { input: z.object({ id }) }, ({ id }) => `order ${String(id)}`);
    const listening = await server.listen({ port });
    return {
      port: Number(new URL(listening.url).port),
      url: listening.url,
      close: async () => {
        await listening.close(10);
        await server.close();
      },
    };
  };
  const before = await shopWith(z.number(), 0);
  await using client = createClient({ servers: { shop: { url: before.url } } });
  const [find] = await mcpTools(client);
  expect(await find?.invoke({ id: 1 })).toBe("order 1");
  await before.close();
  const after = await shopWith(z.string(), before.port);
  try {
    expect(await find?.invoke({ id: "o1" })).toBe("order o1");
  } finally {
    await after.close();
  }
});
