import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "@tenon/server";
import { z } from "zod";

const got: unknown[] = [];
const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined })
  .tool(
    "query_order",
    {
      input: z.object({ order_id: z.string(), caller_id: z.string().default("") }),
      annotations: { readOnlyHint: true },
    },
    (args) => {
      got.push(args);
      return `${args.order_id} was delivered, write to ann@example.com`;
    },
  )
  .tool("refund", { input: z.object({ order_id: z.string() }) }, (args) => {
    got.push(args);
    return "refunded";
  });
const { url } = await orders.listen({ port: 0 });
const folder = await mkdtemp(join(tmpdir(), "interceptors-"));
const file = join(folder, "audit.jsonl");
const lines: string[] = [];
const hours = { open: 0 };

// #region first
import { createClient, type ToolRuntime } from "@tenon/client";
import { audit, cache, injectArgs, log, rateLimit, redact, retry, timeout } from "@tenon/client/interceptors";

type Runtime = ToolRuntime<{ userId: string }>;

const client = createClient<Runtime>({
  servers: { order: { url } },
  interceptors: [
    audit({ sink: (entry) => appendFile(file, `${JSON.stringify(entry)}\n`) }), // outermost: sees every call and its end
    log({ sink: (line) => lines.push(JSON.stringify(line)) }),
    retry({ maxAttempts: 3 }),
    injectArgs<Runtime>({ caller_id: ({ runtime }) => runtime.context?.userId }),
    cache({ ttlMs: 30_000 }), // after what says who asks
    rateLimit({ limit: 100, windowMs: 1_000, maxWaitMs: 5_000 }), // inside retry: each sending counts
    timeout({ timeoutMs: 20_000, tools: { "order/export": 120_000 } }),
    redact({ in: ["results"], patterns: ["email"] }), // innermost: nobody further out sees what it takes out
  ],
});
const runtime = { context: { userId: "ann" } };
const result = await client.callTool("order", "query_order", { order_id: "ORD-001" }, { runtime });
// #endregion
assert.deepEqual(result.content, [{ type: "text", text: "ORD-001 was delivered, write to [redacted]" }]);
assert.deepEqual(got, [{ order_id: "ORD-001", caller_id: "ann" }]);
assert.equal((await readFile(file, "utf8")).trim().split("\n").length, 2);
assert.match(lines[0] ?? "", /"outcome":"ok"/);
assert.ok(!JSON.stringify(await client.listTools()).includes("caller_id"));

// #region own
import type { Interceptor } from "@tenon/client";

const openingHours: Interceptor<Runtime> = async (request, next) => {
  const tool = await request.definition(); // as the server describes it
  if (!tool?.annotations.readOnlyHint && new Date().getHours() < hours.open) {
    return { content: [{ type: "text", text: "Come back at eight" }], isError: true, meta: {}, raw: { content: [] } };
  }
  return next(request.with({ headers: { "X-Call": request.callId } }));
};
// #endregion
await using second = createClient<Runtime>({ servers: { order: { url } }, interceptors: [openingHours] });
assert.equal((await second.callTool("order", "refund", { order_id: "A" })).isError, false);

// #region catalog
import type { CatalogTool } from "@tenon/client";

const pass: Interceptor<Runtime> = (request, next) => next(request);
const warned = Object.assign(pass, {
  catalog: (tool: CatalogTool): CatalogTool => ({ ...tool, description: `${tool.description} (test system)` }),
});
// #endregion
await using third = createClient<Runtime>({ servers: { order: { url } }, interceptors: [warned] });
assert.ok((await third.listTools()).every(({ description }) => description.endsWith("(test system)")));

await client.close();
await orders.close();
await rm(folder, { recursive: true });
