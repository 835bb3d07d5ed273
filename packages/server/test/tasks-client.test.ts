import {
  Client,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createServer, type TenonServer } from "../src/index.ts";
import { ABLE } from "./tasks.ts";

// The client of the extension's authors, which knows nothing of ours: what it follows, others follow too.

let server: TenonServer;
let url: string;
const effects: string[] = [];
beforeAll(async () => {
  server = createServer({ name: "foreign", version: "1.0.0", tasks: { pollIntervalMs: 20 }, logSink: () => undefined });
  server.tool("pay", { input: z.object({ n: z.number() }), task: "required" }, async ({ n }, ctx) => {
    await ctx.step("reserve", () => void effects.push("reserve"));
    await ctx.progress(1, 2);
    const sure = await ctx.elicit(`Pay ${n}?`, z.boolean());
    const again = await ctx.elicit("How?", ["card", "cash"]);
    await ctx.step("pay", () => void effects.push("pay"));
    return { sure: sure.action, how: again.action === "accept" ? again.data : again.action };
  });
  server.tool("fail", { task: "required" }, () => {
    throw new Error("hunter2");
  });
  server.tool("now", {}, () => "now");
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

type Raw = { method: string; params?: Record<string, unknown> };
type Answered = { kind: "result"; result: unknown } | { kind: "error"; error: unknown };

/** The transport of the SDK with the extension's own requests beside the SDK's: those have text as their id. */
function withRaw(inner: Transport): Transport & { rawDispatch(request: Raw): Promise<Answered> } {
  const waiting = new Map<string, (message: { result?: unknown; error?: unknown }) => void>();
  let count = 0;
  const extra = {
    async rawDispatch(request: Raw): Promise<Answered> {
      count += 1;
      const id = `raw:${count}`;
      const answered = new Promise<Answered>((resolve) => {
        waiting.set(id, ({ result, error }) =>
          resolve(error === undefined ? { kind: "result", result } : { kind: "error", error }),
        );
      });
      const sent = { headers: headersOf(request) } as object;
      await inner.send({ jsonrpc: "2.0", id, ...request } as JSONRPCMessage, sent);
      return answered;
    },
  };
  return new Proxy(inner, {
    get(target, name) {
      if (name === "rawDispatch") return extra.rawDispatch;
      const found: unknown = Reflect.get(target, name);
      return typeof found === "function" ? found.bind(target) : found;
    },
    set(target, name, given) {
      if (name !== "onmessage") return Reflect.set(target, name, given);
      target.onmessage = (message, more) => {
        const take = "id" in message && typeof message.id === "string" ? waiting.get(message.id) : undefined;
        if (take && !("method" in message)) return take(message);
        return given?.(message, more);
      };
      return true;
    },
  }) as Transport & typeof extra;
}

function headersOf({ method, params = {} }: Raw): Record<string, string> {
  const name = params.taskId ?? params.name;
  return { "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) };
}

describe("the client of ext-tasks", () => {
  it("follows a task through its questions to its result, and reads a failed and a plain one", async () => {
    const info = { name: "ext", version: "1" };
    const transport = withRaw(new StreamableHTTPClientTransport(new URL(url)));
    const client = new Client(info, { capabilities: ABLE, versionNegotiation: { mode: "auto" } });
    await client.connect(transport);
    const asked: string[] = [];
    const session = createTaskSessionFromClient(client, {
      endpointId: "test",
      rawDispatch: transport.rawDispatch,
      v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo: info, clientCapabilities: ABLE },
      onInputRequest: async ({ params }: { params: { message: string } }) => {
        asked.push(params.message);
        return { action: "accept", content: { value: params.message === "How?" ? "cash" : true } };
      },
    } as never);
    const paying = await session.callTool("pay", { n: 7 });
    expect(paying.kind).toBe("task");
    const { outcome } = await paying.settle();
    const result = resultFromTaskOutcome(outcome) as { structuredContent?: unknown };
    expect(result.structuredContent).toEqual({ sure: "accept", how: "cash" });
    expect(asked).toEqual(["Pay 7?", "How?"]);
    expect(effects).toEqual(["reserve", "pay"]);
    const failing = await session.callTool("fail", {});
    const failed = resultFromTaskOutcome((await failing.settle()).outcome) as { isError?: boolean };
    expect(failed.isError).toBe(true);
    const plain = await session.callTool("now", {});
    expect(plain.kind).toBe("immediate");
    await session.close();
    await client.close();
  });
});
