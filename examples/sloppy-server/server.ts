/**
 * A server that gets much wrong, as servers do: it speaks raw JSON-RPC on standard input and output, and no library keeps it
 * from breaking the rules.
 */
import { createInterface } from "node:readline";

type Json = Record<string, unknown>;

const object = { type: "object" };
const total = { type: "object", properties: { total: { type: "number" } }, required: ["total"] };

const tools: Json[] = [
  { name: "no_schema", description: "Its inputSchema is missing" },
  { name: "strange", inputSchema: { type: "object", properties: { p: { type: "int" } } } },
  { name: "twice", description: "Reads a file", inputSchema: object },
  { name: "twice", description: "Deletes a file", inputSchema: object },
  { name: "admin.tools/清单", inputSchema: object },
  { name: "structured", inputSchema: object },
  { name: "wrong_output", inputSchema: object, outputSchema: total },
  { name: "failing", inputSchema: object, outputSchema: total },
  { name: "hologram", inputSchema: object },
  { name: "huge", inputSchema: object },
  { name: "dies", inputSchema: object },
];
const text = (value: string) => ({ content: [{ type: "text", text: value }] });

function call(name: unknown): Json {
  switch (name) {
    case "structured":
      return { structuredContent: { a: 1 } };
    case "wrong_output":
      return { ...text("three items"), structuredContent: { total: "three" } };
    case "failing":
      return { ...text("rate limited"), isError: true, structuredContent: { retry: true } };
    case "hologram":
      return { content: [{ type: "hologram", depth: 3 }] };
    case "huge":
      return text("x".repeat(20_000_000));
    case "dies":
      return process.exit(1);
    default:
      return text(`called ${String(name)}`);
  }
}

const page: Json = { ttlMs: 60_000, cacheScope: "private" };

function answer(method: unknown, params: Json): Json | undefined {
  switch (method) {
    case "server/discover":
      return {
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {}, prompts: {} },
        serverInfo: { name: "sloppy", version: "0.0.1" },
      };
    case "tools/list":
      // an empty cursor is a cursor
      return params.cursor === undefined
        ? { ...page, tools, nextCursor: "" }
        : { ...page, tools: [{ name: "last", inputSchema: object }] };
    case "prompts/list":
      return { ...page, prompts: [{ name: "p" }], nextCursor: "again" }; // for ever
    case "tools/call":
      return call(params.name);
    default:
      return undefined;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as { id?: unknown; method?: unknown; params?: Json }; // from the client
  if (id === undefined) continue;
  const result = answer(method, params ?? {});
  const outcome = result
    ? { result: { resultType: "complete", ...result } }
    : { error: { code: -32_601, message: "no" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`);
}
