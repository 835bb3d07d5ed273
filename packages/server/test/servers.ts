import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import { createServer, multi, type ServerOptions, type TenonServer, ToolError, text } from "../src/index.ts";

export type Mode = "modern" | "legacy";

/** What handlers of the test server did: effects that must happen once. */
export const effects: string[] = [];

/** A small shop: one tool per behaviour. */
export function shop(options: Partial<ServerOptions> = {}): TenonServer {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => undefined, ...options });
  server.tool(
    "add",
    { input: z.object({ a: z.number(), b: z.number() }), annotations: { readOnlyHint: true } },
    ({ a, b }) => a + b,
  );
  server.tool(
    "order",
    { input: z.object({ id: z.string() }), output: z.object({ id: z.string(), total: z.number() }) },
    ({ id }) => ({
      id,
      total: 5,
    }),
  );
  server.tool("count", { output: z.number() }, () => 3);
  server.tool("both", {}, () => text("for the model", { for: "programs" }));
  server.tool("refuse", {}, () => {
    throw new ToolError("Order 7 does not exist", { data: { id: 7 } });
  });
  server.tool("leak", {}, () => {
    throw new Error("password=hunter2 at /srv/app/db.ts");
  });
  server.tool("nan", {}, () => ({ n: Number.NaN }));
  server.tool("slow", { input: z.object({ steps: z.number().int() }) }, async ({ steps }, ctx) => {
    for (let i = 1; i <= steps; i++) {
      await ctx.progress(i, steps, `step ${i}`);
      await ctx.log.info(`did ${i}`);
    }
    await ctx.log.debug("details");
    return "done";
  });
  server.tool("wait", {}, async (_, ctx) => {
    effects.push("waiting");
    await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve(), { once: true }));
    effects.push("aborted");
    return "never read";
  });
  server.tool("buy", { input: z.object({ item: z.string() }) }, async ({ item }, ctx) => {
    const reserved = await ctx.step("reserve", () => {
      effects.push(`reserve ${item}`);
      return { at: new Date(0), item };
    });
    const sure = await ctx.elicit(`Buy ${item}?`, ["yes", "no"]);
    if (sure.action !== "accept") return `not bought: ${sure.action}`;
    if (sure.data === "no") return "not bought: no";
    const many = await ctx.elicit("How many?", z.number().int().min(1).max(9));
    if (many.action !== "accept") return `not bought: ${many.action}`;
    await ctx.step("charge", () => void effects.push(`charge ${many.data}`));
    return { item: reserved.item, at: reserved.at, many: many.data };
  });
  server.tool("two", {}, async (_, ctx) => {
    const [a, b] = await Promise.all([
      ctx.elicit("Colours?", multi(["red", "green"])),
      ctx.elicit("Name?", z.object({ first: z.string().min(1) })),
    ]);
    return { a, b };
  });
  server.tool("swallow", {}, async (_, ctx) => {
    try {
      await ctx.elicit("Sure?", z.boolean());
      return "answered";
    } catch {
      return "fell back without an answer";
    }
  });
  server.tool("whoami", {}, (_, ctx) => ({
    era: ctx.era,
    client: ctx.client.name,
    key: ctx.idempotencyKey,
    caller: ctx.caller?.subject,
  }));
  server.resource(
    "company://policies/return",
    { mimeType: "text/markdown", description: "Return policy" },
    () => "# Returns",
  );
  server.resource("order://{user}/{id}/detail", {}, ({ user, id }) => ({ user, id }));
  server.prompt(
    "reply",
    { input: z.object({ id: z.string().describe("order"), note: z.string().optional() }) },
    ({ id }) => `About ${id}`,
  );
  return server;
}

export async function connect(url: string, mode: Mode, options: ClientOptions = {}): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { ...options, versionNegotiation: { mode: mode === "modern" ? "auto" : "legacy" } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}
