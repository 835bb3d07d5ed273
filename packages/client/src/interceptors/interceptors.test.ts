import { describe, expect, expectTypeOf, it } from "vitest";
import { createClient, type Interceptor, type ToolResult, type ToolRuntime } from "../index.ts";
import { audit, cache, injectArgs, log, rateLimit, redact, retry, timeout } from "./index.ts";

type Mine = ToolRuntime<{ userId: string }>;

describe("the interceptors of the package", () => {
  it("fit clients with any runtime and any outcome, together", () => {
    const all = () => [
      audit({ sink: () => {} }),
      log(),
      retry(),
      rateLimit({ limit: 1, windowMs: 1 }),
      timeout({ timeoutMs: 1 }),
      cache({ ttlMs: 1 }),
      redact(),
    ];
    const plain = createClient({ servers: {}, interceptors: all() });
    expectTypeOf(plain.callTool).returns.resolves.toEqualTypeOf<ToolResult>();
    const typed = createClient<Mine, "message">({
      servers: {},
      interceptors: [
        retry(),
        injectArgs<Mine>({ user: ({ runtime }) => runtime.context?.userId }),
        async () => "message",
      ],
    });
    expectTypeOf(typed.callTool).returns.resolves.toEqualTypeOf<ToolResult | "message">();
    const own: Interceptor<Mine> = (request, next) => next(request);
    const inferred = createClient({ servers: {}, interceptors: [own, retry(), ...all()] });
    expectTypeOf(inferred.callTool).parameter(3).toExtend<{ runtime?: Mine } | undefined>();
    expectTypeOf(inferred.callTool).returns.resolves.toEqualTypeOf<ToolResult>();
    const from = createClient({
      servers: {},
      interceptors: [injectArgs<Mine>({ user: ({ runtime }) => runtime.context?.userId }), retry()],
    });
    expectTypeOf(from.callTool).parameter(3).toExtend<{ runtime?: Mine } | undefined>();
    expectTypeOf(from.callTool).returns.resolves.toEqualTypeOf<ToolResult>();
    const contextual = createClient<Mine>({
      servers: {},
      interceptors: [injectArgs({ user: ({ runtime }) => runtime.context?.userId })],
    });
    expect([plain, typed, inferred, from, contextual].map((client) => client.servers())).toEqual([[], [], [], [], []]);
  });
});
