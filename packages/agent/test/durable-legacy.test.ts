import { ToolMessage } from "@langchain/core/messages";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph";
import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";
import { createAgent } from "langchain";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type Answer,
  type InteractiveOptions,
  type McpToolsOptions,
  MultiServerMCPClient,
  mcpMiddleware,
  mcpTools,
  type Question,
  runInteractive,
} from "../src/index.ts";
import { serveAsLegacy } from "./legacy-server.ts";
import { callingModel } from "./scripted-model.ts";

const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** What the server's handler did. */
interface Booking {
  readonly done: string[];
  price: number;
}

async function startHotel(idempotent = false): Promise<Booking & { url: string }> {
  const booking = { done: [] as string[], price: 100 };
  const server = createServer({ name: "hotel", version: "1.0.0", logSink: () => {} });
  server.tool("book", { input: z.object({ city: z.string() }), idempotent }, async ({ city }, ctx) => {
    await ctx.step("look", () => booking.done.push(`looked ${city}`));
    const date = await ctx.elicit(`When in ${city}?`, z.object({ date: z.string() }));
    if (date.action !== "accept") return "no date";
    const sure = await ctx.elicit(`Pay ${booking.price} for ${city}?`, z.object({ ok: z.boolean() }));
    if (sure.action !== "accept" || !sure.data.ok) return "not booked";
    booking.done.push(`paid ${booking.price} for ${city}`);
    return `booked ${city} on ${date.data.date} for ${booking.price}`;
  });
  const served = await serveAsLegacy(server);
  cleanups.push(async () => {
    await served.close();
    await server.close();
  });
  return Object.assign(booking, { url: served.url });
}

async function startAgent(
  url: string,
  checkpointer: BaseCheckpointSaver,
  cities: readonly string[] = ["Rome"],
  options: McpToolsOptions = { legacyQuestions: "replay" },
) {
  const client = createClient({ servers: { hotel: { url } }, elicitation: "interrupt" });
  cleanups.push(() => client.close());
  const agent = createAgent({
    model: callingModel(...cities.map((city) => ({ name: "mcp_hotel_book", args: { city } }))),
    tools: await mcpTools(client, options),
    middleware: [mcpMiddleware()],
    checkpointer,
  });
  return (input: string | undefined, more: Partial<InteractiveOptions> = {}) =>
    runInteractive(agent, input, { threadId: "t", ask: () => undefined, ...more });
}

const messageOf = (question: Question) =>
  question.kind === "elicitation" ? (question.questions.question?.message ?? "") : "";

function answering(question: Question): Answer {
  const content: Record<string, string | boolean> = messageOf(question).startsWith("When")
    ? { date: "1 May" }
    : { ok: true };
  return { answers: { question: { action: "accept", content } } };
}

describe("a question that a server of the older revision asks inside a call", () => {
  it("fails the call with an error that says what can be done", async () => {
    const hotel = await startHotel();
    const drive = await startAgent(hotel.url, new MemorySaver(), ["Rome"], {});
    const result = await drive("go", { ask: answering });
    const message = result.messages.find((item) => ToolMessage.isInstance(item));
    expect(message).toMatchObject({ status: "error", artifact: { error: { code: "legacy_question" } } });
    expect(message?.text).toContain('legacyQuestions: "replay"');
    expect(hotel.done).toEqual(["looked Rome"]);
  });

  it("can wait for another process when replay is chosen; what comes before the questions is done once more for each", async () => {
    const hotel = await startHotel();
    const saver = new MemorySaver();
    const asked: string[] = [];
    const oneOnly = (question: Question) => {
      asked.push(messageOf(question));
      return asked.length % 2 === 1 ? answering(question) : undefined;
    };
    expect(await (await startAgent(hotel.url, saver))("go")).toMatchObject({ status: "paused" });
    expect(await (await startAgent(hotel.url, saver))(undefined, { ask: oneOnly })).toMatchObject({ status: "paused" });
    const last = await (await startAgent(hotel.url, saver))(undefined, { ask: answering });
    expect(asked).toEqual(["When in Rome?", "Pay 100 for Rome?"]);
    expect(last.reply).toBe("done: success=booked Rome on 1 May for 100");
    expect(hotel.done).toEqual(["looked Rome", "looked Rome", "looked Rome", "paid 100 for Rome"]);
  });

  it("waits for tools of MultiServerMCPClient as well", async () => {
    const hotel = await startHotel();
    const client = new MultiServerMCPClient({
      mcpServers: { hotel: { url: hotel.url } },
      elicitation: "interrupt",
      legacyQuestions: "replay",
    });
    cleanups.push(() => client.close());
    const agent = createAgent({
      model: callingModel({ name: "book", args: { city: "Rome" } }),
      tools: await client.getTools(),
      middleware: [mcpMiddleware()],
      checkpointer: new MemorySaver(),
    });
    const { reply } = await runInteractive(agent, "go", { threadId: "t", ask: answering });
    expect(reply).toBe("done: success=booked Rome on 1 May for 100");
  });

  it("costs nothing where the server knows the call again by its key", async () => {
    const hotel = await startHotel(true);
    const drive = await startAgent(hotel.url, new MemorySaver());
    const result = await drive("go", { ask: answering });
    expect(result.reply).toBe("done: success=booked Rome on 1 May for 100");
    expect(hotel.done).toEqual(["looked Rome", "paid 100 for Rome"]);
  });

  it("is asked anew when it says something else by then: the old yes does not count", async () => {
    const hotel = await startHotel();
    const drive = await startAgent(hotel.url, new MemorySaver());
    const asked: string[] = [];
    const result = await drive("go", {
      ask: (question) => {
        asked.push(messageOf(question));
        if (asked.length === 2) hotel.price = 999;
        return answering(question);
      },
    });
    expect(asked).toEqual(["When in Rome?", "Pay 100 for Rome?", "Pay 999 for Rome?"]);
    expect(result.reply).toBe("done: success=booked Rome on 1 May for 999");
    expect(hotel.done.filter((line) => line.startsWith("paid"))).toEqual(["paid 999 for Rome"]);
  });

  it("belongs to its own call where two run at once", async () => {
    const hotel = await startHotel();
    const drive = await startAgent(hotel.url, new MemorySaver(), ["Rome", "Oslo"]);
    const result = await drive("go", { ask: answering });
    expect(result.reply).toBe("done: success=booked Rome on 1 May for 100 | success=booked Oslo on 1 May for 100");
    expect(hotel.done.filter((line) => line.startsWith("paid")).sort()).toEqual([
      "paid 100 for Oslo",
      "paid 100 for Rome",
    ]);
  });

  it("declined is an answer like any other, and an unknown option is refused", async () => {
    const hotel = await startHotel();
    const drive = await startAgent(hotel.url, new MemorySaver());
    const result = await drive("go", { ask: () => ({ answers: { question: { action: "decline" } } }) });
    expect(result.reply).toBe("done: success=no date");
    // @ts-expect-error not a way to treat questions
    await expect(startAgent(hotel.url, new MemorySaver(), [], { legacyQuestions: "again" })).rejects.toMatchObject({
      code: "invalid_option",
    });
  });
});
