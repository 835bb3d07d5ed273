import type { ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import { createClient, type ToolRuntime } from "@tenon/client";
import { createAgent } from "langchain";
import { describe, expectTypeOf, it } from "vitest";
import {
  type AgentInterceptor,
  type McpTool,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  runInteractive,
} from "../src/index.ts";

interface Context {
  userId: string;
}
interface State {
  cart: string[];
}

describe("types", () => {
  it("a plain client, and one whose interceptors know context and state, both fit", async () => {
    await using plain = createClient({ servers: {} });
    const interceptor: AgentInterceptor<Context, State> = async (request, next) => {
      expectTypeOf(request.runtime.context?.userId).toEqualTypeOf<string | undefined>();
      expectTypeOf(request.runtime.state?.cart).toEqualTypeOf<string[] | undefined>();
      return next(request);
    };
    await using typed = createClient<ToolRuntime<Context, State>, ToolMessage | Command>({
      servers: {},
      elicitation: "interrupt",
      interceptors: [interceptor],
    });
    await using inferred = createClient({ servers: {}, interceptors: [interceptor] });
    const tools = [...(await mcpTools(plain)), ...(await mcpTools(typed)), ...(await mcpTools(inferred))];
    expectTypeOf(tools).toEqualTypeOf<McpTool[]>();
    const agent = createAgent({ model: new OfflineModel(), tools, middleware: [mcpMiddleware()] });
    expectTypeOf(runInteractive).toBeCallableWith(agent, "hello", { threadId: "t", ask: () => undefined });
  });
});
