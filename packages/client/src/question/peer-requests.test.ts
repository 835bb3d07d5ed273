import { createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { legacyHandler, listen } from "../../test/servers.ts";
import { type ClientOptions, createClient, renderText, type SamplingHandler, type SamplingRequest } from "../index.ts";

const question = {
  messages: [{ role: "user" as const, content: { type: "text" as const, text: "What is 8 × 5?" } }],
  maxTokens: 50,
};

/** One tool that wants a model, one that asks where it may work, one that asks for all at once. */
function makeServer(): McpServer {
  const server = new McpServer({ name: "old", version: "1.0.0" });
  const asks = {
    think: { model: inputRequired.createMessage(question) },
    where: { roots: inputRequired.listRoots() },
    both: { model: inputRequired.createMessage(question), roots: inputRequired.listRoots() },
  };
  for (const [name, inputRequests] of Object.entries(asks)) {
    server.registerTool(name, { inputSchema: z.object({}) }, (_, ctx) => {
      const answers = ctx.mcpReq.inputResponses;
      if (!answers) return inputRequired({ inputRequests });
      return { content: [{ type: "text", text: JSON.stringify(answers) }] };
    });
  }
  return server;
}

const eras = {
  modern: () => {
    const handler = createMcpHandler(makeServer, { legacy: "reject" });
    return listen((request) => handler.fetch(request));
  },
  legacy: () => listen(legacyHandler(makeServer)),
};

async function open(era: keyof typeof eras, options: Omit<ClientOptions, "servers">) {
  const server = await eras[era]();
  const client = createClient({ servers: { s: { url: server.url } }, ...options });
  onTestFinished(async () => {
    await client.close();
    await server.kill();
  });
  const ask = async (tool: string) => renderText((await client.callTool("s", tool)).content);
  return { client, server, ask };
}

const handler: SamplingHandler = () => ({
  role: "assistant",
  content: { type: "text", text: "40" },
  model: "m1",
});

describe.each(["modern", "legacy"] as const)("a %s server that wants more than answers from a person", (era) => {
  it("has a model answer, when the client lets one", async () => {
    const seen: [SamplingRequest, object][] = [];
    const { ask } = await open(era, {
      sampling: (request, source) => {
        seen.push([request, source]);
        return handler(request, source);
      },
    });
    expect(JSON.parse(await ask("think")).model).toMatchObject({ content: { type: "text", text: "40" }, model: "m1" });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject([question, { server: "s", tool: "think", signal: expect.any(AbortSignal) }]);
  });

  it("has no model answer that was not approved", async () => {
    let asked = 0;
    const { ask } = await open(era, {
      sampling: {
        approve: ({ messages }) => messages.length > 5,
        handler: (request, source) => {
          asked++;
          return handler(request, source);
        },
      },
    });
    const said = await ask("think").catch((error: unknown) => String(error));
    expect(said).toMatch(/declined/);
    expect(asked).toBe(0);
  });

  it("learns the roots, from a list or a function", async () => {
    const roots = [{ uri: "file:///project/a", name: "A" }];
    const fixed = await open(era, { roots });
    expect(JSON.parse(await fixed.ask("where")).roots).toMatchObject({ roots });
    const tools: unknown[] = [];
    const made = await open(era, {
      roots: ({ tool }) => {
        tools.push(tool);
        return roots;
      },
      sampling: handler,
    });
    expect(JSON.parse(await made.ask("both"))).toMatchObject({ model: { model: "m1" }, roots: { roots } });
    expect(tools).toEqual(["both"]);
  });

  it("is told of no ability that has no handler", async () => {
    const { server, client } = await open(era, { roots: [] });
    await client.listTools();
    const sent = JSON.stringify(server.requests.map(({ body }) => body));
    expect(sent).toContain('"roots"');
    expect(sent).not.toContain('"sampling"');
    const refused = await client.callTool("s", "think").catch((error: unknown) => error);
    expect(refused).toSatisfy((one: { isError?: boolean }) => one instanceof Error || one.isError === true);
  });

  it("gets nothing from a handler that throws; the caller gets the reason", async () => {
    const { ask } = await open(era, {
      sampling: () => {
        throw new Error("key sk-123 is wrong");
      },
    });
    await expect(ask("think")).rejects.toMatchObject({ code: "handler_failed", server: "s" });
    await expect(ask("think")).rejects.toThrow("key sk-123 is wrong");
  });

  it("is answered in time, or the call can be cancelled", async () => {
    const { client } = await open(era, { sampling: () => new Promise<never>(() => {}) });
    const signal = AbortSignal.timeout(400);
    await expect(client.callTool("s", "think", {}, { signal })).rejects.toMatchObject({ code: "cancelled" });
  });

  it("is sent nothing that is no answer", async () => {
    const { ask } = await open(era, { sampling: (() => "40") as never, roots: (() => [{ uri: "/project" }]) as never });
    await expect(ask("think")).rejects.toThrow("sampling handler must return");
    await expect(ask("where")).rejects.toThrow(/uri: "file:/);
  });
});

describe("options for old peers", () => {
  it("are checked when the client is made", () => {
    const make = (options: object) => () => createClient({ servers: {}, ...options });
    expect(make({ sampling: {} })).toThrow("{ approve, handler }");
    expect(make({ sampling: { aprove: () => true, handler } })).toThrow('did you mean "approve"');
    expect(make({ roots: [{ uri: "https://example.com" }] })).toThrow(/roots\[0\] must be/);
    expect(make({ roots: "file:///a" })).toThrow("a list of roots or a function");
    expect(make({ smapling: handler })).toThrow('did you mean "sampling"');
  });
});
