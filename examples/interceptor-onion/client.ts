import { createClient, renderText, type ToolRuntime } from "@tenon/client";
import { type AuditIntent, type AuditOutcome, audit, cache, injectArgs, retry } from "@tenon/client/interceptors";
import { check } from "../lib/check.ts";
import { openLine } from "./line.ts";
import orders, { seen } from "./server.ts";

type Caller = ToolRuntime<{ userId: string }>;

const { url } = await orders.listen({ port: 0 });
const line = await openLine(url);
const entries: (AuditIntent | AuditOutcome)[] = [];
await using client = createClient({
  servers: { orders: { url: line.url } },
  interceptors: [
    audit({ sink: (entry) => void entries.push(entry), redact: {}, actor: ({ runtime }) => runtime.context }),
    retry({ initialDelayMs: 10 }),
    injectArgs<Caller>({ caller_id: ({ runtime }) => runtime.context?.userId }), // before the cache: it is part of the key
    cache({ ttlMs: 60_000 }),
  ],
});
const ann = { runtime: { context: { userId: "ann" } } };
const bob = { runtime: { context: { userId: "bob" } } };

const tools = await client.listTools();
check("the model sees no caller_id", JSON.stringify(tools).includes("caller_id"), false);

const order = { order_id: "ORD-001" };
await client.callTool("orders", "find_order", order, ann);
await client.callTool("orders", "find_order", order, ann);
await client.callTool("orders", "find_order", order, bob);
check("an order is looked up once per caller", seen, ["ann looks at ORD-001", "bob looks at ORD-001"]);

line.failures = 2;
const refund = await client.callTool("orders", "refund", { ...order, caller_id: "root" }, ann);
check("a refund outlives two failures", renderText(refund.content), "ORD-001 is refunded");
check("it is made once, by who is in front of the desk, whatever the model wrote", seen.slice(2), [
  "ann refunds ORD-001",
]);

line.failures = 9;
const lost = await client.callTool("orders", "refund", order, ann).catch((error: unknown) => error);
check("a line that stays bad is an error", String(lost), /HTTP 503/);

const outcomes = entries.filter((entry): entry is AuditOutcome => entry.kind === "outcome");
check("every call has an intent and an outcome", entries.length, 10);
check(
  "the failure is among them",
  outcomes.map(({ tool, outcome, error }) => `${tool} ${error?.code ?? outcome}`),
  ["find_order ok", "find_order ok", "find_order ok", "refund ok", "refund http_error"],
);
for (const { callId, tool, outcome } of outcomes) console.log(`${callId} ${tool} ${outcome}`);

await client.close();
await line.close();
await orders.close();
