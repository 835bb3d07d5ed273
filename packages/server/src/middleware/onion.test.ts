import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ask, call, said } from "../../test/ask.ts";
import { createServer, type LogEntry, type Middleware, type ServerRequest, ToolError } from "../index.ts";

const logged: LogEntry[] = [];
const make = () =>
  createServer({ name: "test", version: "1", logSink: (entry) => logged.push(entry) })
    .tool(
      "echo",
      { input: z.object({ n: z.number() }), annotations: { readOnlyHint: true }, tags: ["t"] },
      ({ n }) => n,
    )
    .tool("asks", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes"])).action)
    .resource("a://{id}", {}, ({ id }) => id)
    .prompt("p", {}, () => "p");

describe("middleware", () => {
  it("may answer without waiting for next, whatever becomes of it", async () => {
    const server = make().use((_request, next) => {
      void next(); // the tool does not exist: this fails, and nobody looks
      return { content: [{ type: "text", text: "soon" }] };
    });
    expect(said(await call(server, "no-such-tool"))).toBe("soon");
    await new Promise((resolve) => setImmediate(resolve)); // where an unhandled rejection would be reported
  });
  it("stands around every request, the first added outermost", async () => {
    const order: string[] = [];
    const layer =
      (name: string): Middleware =>
      async (request, next) => {
        order.push(`${name} ${request.method}`);
        const result = await next();
        order.push(`${name} done`);
        return result;
      };
    const server = make().use(layer("outer"), layer("inner"));
    await call(server, "echo", { n: 1 });
    expect(order).toEqual(["outer tools/call", "inner tools/call", "inner done", "outer done"]);
    order.length = 0;
    for (const method of ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
      await ask(server, method);
    await ask(server, "resources/read", { uri: "a://1" });
    await ask(server, "prompts/get", { name: "p" });
    expect(order.filter((line) => line.startsWith("inner ") && !line.endsWith("done"))).toEqual(
      ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read", "prompts/get"].map(
        (method) => `inner ${method}`,
      ),
    );
  });
  it("sees who asks for what, and what is known about it", async () => {
    const seen: ServerRequest[] = [];
    const server = make().use((request, next) => {
      seen.push(request);
      return next();
    });
    const caller = { subject: "alice", scopes: [], claims: {} };
    await call(server, "echo", { n: 1 }, { caller });
    await ask(server, "resources/read", { uri: "a://1" }, { era: "legacy" });
    await call(server, "nothing");
    expect(seen[0]).toMatchObject({
      method: "tools/call",
      name: "echo",
      params: { arguments: { n: 1 } },
      caller,
      era: "modern",
      target: { kind: "tool", tags: ["t"], readOnly: true },
      resumed: false,
    });
    expect(seen[0]?.headers?.get("mcp-name")).toBe("echo");
    expect(seen[0]?.signal).toBeInstanceOf(AbortSignal);
    expect(seen[1]).toMatchObject({ name: "a://1", era: "legacy", target: { kind: "resource", readOnly: true } });
    expect(seen[2]).toMatchObject({ name: "nothing", target: undefined });
  });
  it("may answer itself, change what goes in and what comes out", async () => {
    const server = make().use(async (request, next) => {
      if (request.params.name === "gone") return { content: [{ type: "text", text: "answered outside" }] };
      if (request.method !== "tools/call") return next();
      const result = await next({ ...request, params: { ...request.params, arguments: { n: 7 } } });
      return { ...result, _meta: { touched: true } };
    });
    expect(said(await call(server, "gone"))).toBe("answered outside");
    const changed = await call(server, "echo", { n: 1 });
    expect(said(changed)).toBe("7");
    expect(changed.result?._meta).toMatchObject({ touched: true });
  });
  it("sees a question as a result, and the round after it as resumed", async () => {
    const seen: unknown[] = [];
    const server = make().use(async (request, next) => {
      const result = await next();
      if (request.name === "asks") seen.push([request.resumed, result.resultType]);
      return result;
    });
    const first = await call(server, "asks");
    expect(first.result?.resultType).toBe("input_required");
    const { inputRequests, requestState } = first.result as { inputRequests: object; requestState: string };
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { value: "yes" } }]),
    );
    const second = await ask(server, "tools/call", { name: "asks", arguments: {}, requestState, inputResponses });
    expect(said(second)).toBe("accept");
    expect(seen).toEqual([
      [false, "input_required"],
      [true, undefined],
    ]);
  });
  it.each(["modern", "legacy"] as const)(
    "fails as a handler does: typed errors verbatim, others masked (%s)",
    async (era) => {
      const server = make().use((request) => {
        if (request.name === "echo") throw new ToolError("Closed on Sundays", { data: { code: "closed" } });
        throw new Error("password=hunter2 of db-7");
      });
      const refused = await call(server, "echo", { n: 1 }, { era });
      expect(refused.result).toMatchObject({ isError: true, structuredContent: { code: "closed" } });
      expect(said(refused)).toBe("Closed on Sundays");
      expect((await ask(server, "prompts/get", { name: "echo" }, { era })).error).toMatchObject({
        code: -32600,
        message: "Closed on Sundays",
        data: { code: "closed" },
      });
      expect(said(await call(server, "asks", {}, { era }))).toMatch(/^Request tools\/call failed \(reference \w{6}\)$/);
      const list = await ask(server, "tools/list", {}, { era });
      expect(list.error).toMatchObject({
        code: -32603,
        message: expect.stringMatching(/^Request tools\/list failed \(reference/),
      });
      expect(JSON.stringify(list)).not.toMatch(/hunter2|db-7/);
      expect(JSON.stringify(logged)).toContain("password=[redacted] of db-7");
    },
  );
});
