import type { ToolMessage } from "@langchain/core/messages";
import { audio, content, createServer, file, image, link, type TenonServer, ToolError, text } from "@tenon/server";
import { afterEach, expect } from "vitest";
import { z } from "zod";
import { program } from "../../../test/programs.ts";
import { type Connection, type MultiServerConfig, MultiServerMCPClient } from "../src/index.ts";

/** One red pixel. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** What a weather server was called with: arguments and the header of the caller. */
export interface Seen {
  readonly args: unknown;
  readonly header: string | undefined;
}

/** A server of everything an answer can hold. */
export function weatherServer(seen: Seen[] = []): TenonServer {
  const server = createServer({ name: "weather", version: "1.0.0", logSink: () => {} });
  server.tool(
    "get_weather",
    { input: z.object({ location: z.string(), units: z.string().optional() }), annotations: { readOnlyHint: true } },
    ({ location, units }, ctx) => {
      seen.push({ args: { location, ...(units && { units }) }, header: ctx.headers?.get("x-request-id") ?? undefined });
      if (location === "nowhere") throw new ToolError("no data for nowhere");
      return `sunny in ${location}`;
    },
  );
  server.tool("picture", {}, () => content(["Look:", image(PNG, "image/png"), audio("AAAA", "audio/wav")]));
  server.tool("report", {}, () =>
    content([file("weather://today", "all dry", "text/plain"), link("weather://today", "today")]),
  );
  server.tool("numbers", { output: z.object({ high: z.number() }) }, () => text("warm", { high: 28 }));
  server.tool("slow", { input: z.object({ ms: z.number() }) }, async ({ ms }, ctx) => {
    await ctx.progress(1, 4, "a quarter");
    await ctx.log.debug("thinking");
    await ctx.log.warning("slowly");
    await new Promise((resolve) => setTimeout(resolve, ms));
    return "at last";
  });
  server.tool("book", {}, async (_, ctx) => {
    const answer = await ctx.elicit("Which day?", z.object({ day: z.string() }));
    return answer.action === "accept" ? `booked ${answer.data.day}` : "not booked";
  });
  server.resource("weather://today", { title: "Today", mimeType: "text/plain" }, () => "all dry");
  server.resource("weather://map", { mimeType: "image/png" }, () => new Uint8Array(Buffer.from(PNG, "base64")));
  server.resource("weather://day/{day}", { title: "A day" }, ({ day }) => `dry on ${day}`);
  server.prompt(
    "forecast",
    { input: z.object({ place: z.string() }) },
    ({ place }) => `A forecast for ${place}, please`,
  );
  return server;
}

const cleanups: Array<() => unknown> = [];
/** Done after the test. */
export const later = (cleanup: () => unknown) => cleanups.push(cleanup);
/** Every file calls this: a hook set here would belong to the first file of a worker only. */
export function cleanUpAfterEach(): void {
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
}

export const math = {
  command: process.execPath,
  args: [await program("./math-server.ts", import.meta.url)],
  connectTimeoutMs: 60_000,
} satisfies Connection;
/** Nothing listens there: the port of a server that is gone. */
export const GONE = "http://127.0.0.1:9/mcp";

export async function weather(seen: Seen[] = []): Promise<{ url: string }> {
  const server = weatherServer(seen);
  const listening = await server.listen({ port: 0 });
  cleanups.push(async () => {
    await listening.close(10);
    await server.close();
  });
  return { url: listening.url };
}

export function clientOf(config: ConstructorParameters<typeof MultiServerMCPClient>[0]): MultiServerMCPClient {
  const client = new MultiServerMCPClient(config);
  cleanups.push(() => client.close());
  return client;
}

/** A client of the weather server alone. */
export async function weatherClient(config: Partial<MultiServerConfig> = {}, connection = {}, seen: Seen[] = []) {
  return clientOf({ mcpServers: { weather: { ...(await weather(seen)), ...connection } }, ...config });
}

export async function tool(client: MultiServerMCPClient, name: string) {
  const found = (await client.getTools()).find((one) => one.name.endsWith(name));
  if (!found) throw new Error(`no tool ${name}`);
  return found;
}

/** The name of the server a tool comes from. */
export function toolServer(metadata: unknown): string | undefined {
  const { mcp } = metadata as { mcp?: { server: string } }; // written by mcpTools
  return mcp?.server;
}

export async function call(
  client: MultiServerMCPClient,
  name: string,
  args: Record<string, unknown> = {},
): Promise<ToolMessage> {
  return (await tool(client, name)).invoke({ type: "tool_call", id: "c1", name, args });
}

/** Waits until something has happened. */
export const until = async (met: () => boolean) => {
  const end = Date.now() + 20_000;
  while (!met() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(met()).toBe(true);
};
