import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ConnectionError, ExecutionError } from "@tenon/core";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { type MultiServerConfig, mcpMiddleware } from "../src/index.ts";
import {
  call,
  cleanUpAfterEach,
  clientOf,
  GONE,
  math,
  PNG,
  type Seen,
  tool,
  toolServer,
  until,
  weather,
  weatherClient,
} from "./multi-servers.ts";
import { callingModel } from "./scripted-model.ts";

cleanUpAfterEach();

describe("several servers at once", () => {
  it("give one agent their tools: a process with every option people write, and an address", async () => {
    const client = clientOf({
      throwOnLoadError: true,
      prefixToolNameWithServerName: false,
      additionalToolNamePrefix: "",
      useStandardContentBlocks: true,
      onConnectionError: "ignore",
      mcpServers: {
        math: { transport: "stdio", restart: { enabled: true, maxAttempts: 3, delayMs: 1_000 }, ...math },
        weather: { ...(await weather()), headers: { Authorization: "Bearer token123" } },
        old: { transport: "sse", url: GONE, reconnect: { enabled: true, maxAttempts: 5, delayMs: 2_000 } },
      },
    });
    const tools = await client.getTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["add", "multiply", "get_weather"]));
    const model = callingModel(
      { name: "add", args: { a: 3, b: 5 } },
      { name: "get_weather", args: { location: "Beijing" } },
    );
    const { messages } = await createAgent({ model, tools }).invoke({ messages: [new HumanMessage("go")] });
    expect(messages.at(-1)?.text).toBe("done: success=8 | success=sunny in Beijing");
  });

  it("may be given without mcpServers, and asked for by name", async () => {
    const client = clientOf({ math, weather: await weather() });
    expect((await client.getTools("math")).map(({ name }) => name)).toContain("add");
    expect((await client.getTools(["weather"])).every(({ metadata }) => toolServer(metadata) === "weather")).toBe(true);
    await expect(client.getTools("wether")).rejects.toThrow('did you mean "weather"');
  });

  it("show where a tool comes from in its name when asked to", async () => {
    const named = await weatherClient({ prefixToolNameWithServerName: true, additionalToolNamePrefix: "mcp" });
    expect((await named.getTools()).map(({ name }) => name)).toContain("mcp__weather__get_weather");
    const prefixed = await weatherClient({ additionalToolNamePrefix: "x" });
    expect(await (await tool(prefixed, "x__get_weather")).invoke({ location: "here" })).toBe("sunny in here");
  });

  it("with tools of one name need the prefix", async () => {
    const mcpServers = { one: await weather(), two: await weather() };
    await expect(clientOf({ mcpServers }).getTools()).rejects.toThrow("Set prefixToolNameWithServerName: true");
    expect(await clientOf({ mcpServers, prefixToolNameWithServerName: true }).getTools()).toHaveLength(12);
  });

  it("pass a process its directory and environment, and start it again when it has ended", async () => {
    const cwd = realpathSync(tmpdir());
    const client = clientOf({ math: { ...math, cwd, env: { GREETING: "hello" } } });
    expect(await (await tool(client, "environment")).invoke({})).toBe(`${cwd} hello`);
    expect(await (await tool(client, "exit")).invoke({})).toBe("leaving");
    await until(() => client.servers()[0]?.health !== "up");
    expect(await (await tool(client, "add")).invoke({ a: 1, b: 1 })).toBe("2");
  });

  it("can be opened ahead, closed, and used again", async () => {
    const client = await weatherClient();
    const { weather: tools = [] } = await client.initializeConnections();
    expect(tools.map(({ name }) => name)).toContain("numbers");
    await client.close();
    expect(await tools.find(({ name }) => name === "get_weather")?.invoke({ location: "x" })).toBe("sunny in x");
  });

  it("may be behind a transport of one's own", async () => {
    const { url } = await weather();
    const transport = () => new StreamableHTTPClientTransport(new URL(url));
    expect(await clientOf({ mcpServers: { weather: { transport } } }).getTools()).toHaveLength(6);
  });
});

describe("a server that cannot be reached", () => {
  it("makes getTools fail by default", async () => {
    const client = clientOf({ mcpServers: { gone: { url: GONE }, weather: await weather() } });
    await expect(client.getTools()).rejects.toMatchObject({ name: "ConnectionError", server: "gone" });
  });

  it("is skipped when that is wanted", async () => {
    const mcpServers = { gone: { url: GONE }, weather: await weather() };
    const client = clientOf({ mcpServers, onConnectionError: "ignore" });
    expect(await client.getTools()).toHaveLength(6);
    expect(await client.getClient("gone")).toBeUndefined();
    expect(await client.getClient("weather")).toBeDefined();
    expect(client.servers().map(({ health }) => health)).toEqual(["down", "up"]);
  });

  it("is told to a function, which may throw", async () => {
    const failed: unknown[] = [];
    const mcpServers = { gone: { url: GONE }, weather: await weather() };
    const tolerant = clientOf({ mcpServers, onConnectionError: (failure) => void failed.push(failure) });
    expect(await tolerant.getTools()).toHaveLength(6);
    expect(failed).toEqual([{ serverName: "gone", error: expect.any(ConnectionError) }]);
    const strict = clientOf({
      mcpServers,
      onConnectionError: ({ serverName }) => {
        throw new Error(`${serverName} is critical`);
      },
    });
    await expect(strict.getTools()).rejects.toThrow("gone is critical");
  });
});

describe("answers", () => {
  it("are text where they are text alone, and blocks otherwise", async () => {
    const client = await weatherClient();
    expect(await (await tool(client, "get_weather")).invoke({ location: "here" })).toBe("sunny in here");
    expect((await call(client, "picture")).content).toEqual([
      { type: "text", text: "Look:" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
      { type: "audio", source_type: "base64", data: "AAAA", mime_type: "audio/wav" },
    ]);
  });

  it("are LangChain's standard blocks when asked for", async () => {
    const client = await weatherClient({ useStandardContentBlocks: true, outputHandling: "content" });
    expect((await call(client, "picture")).content).toEqual([
      { type: "text", source_type: "text", text: "Look:" },
      { type: "image", source_type: "base64", data: PNG, mime_type: "image/png" },
      { type: "audio", source_type: "base64", data: "AAAA", mime_type: "audio/wav" },
    ]);
    expect((await call(client, "report")).content).toEqual([
      {
        type: "file",
        source_type: "text",
        text: "all dry",
        mime_type: "text/plain",
        metadata: { uri: "weather://today" },
      },
      { type: "file", source_type: "url", url: "weather://today", mime_type: undefined },
    ]);
  });

  it("keep resources, structured content and what outputHandling says out of the model's sight", async () => {
    const client = await weatherClient();
    const report = await call(client, "report");
    expect(report.content).toMatchObject([{ type: "file", source_type: "url" }]);
    expect(report.artifact).toMatchObject([
      { type: "resource", resource: { uri: "weather://today", text: "all dry" } },
    ]);
    const numbers = await call(client, "numbers");
    expect(numbers.content).toBe("warm");
    expect(numbers.artifact).toEqual([{ type: "mcp_structured_content", data: { high: 28 } }]);
  });

  it("are divided as the server's setting says, over the general one", async () => {
    const general = { image: "artifact", audio: "artifact" } as const;
    const client = await weatherClient({ outputHandling: general }, { outputHandling: { image: "content" } });
    const { content, artifact } = await call(client, "picture");
    expect(content).toMatchObject([{ type: "text" }, { type: "image_url" }]);
    expect(artifact).toEqual([{ type: "audio", data: "AAAA", mimeType: "audio/wav" }]);
  });
});

describe("failed calls", () => {
  const missing = { name: "get_weather", args: { location: "nowhere" } };
  const go = { messages: [new HumanMessage("go")] };

  it("are messages by default, with a foreign middleware as well", async () => {
    const agent = createAgent({ model: callingModel(missing), tools: await (await weatherClient()).getTools() });
    expect((await agent.invoke(go)).messages.at(-1)?.text).toBe("done: error=no data for nowhere");
  });

  it("end the run when they are not to be handled", async () => {
    const tools = await (await weatherClient({ handleToolErrors: false })).getTools();
    const agent = createAgent({ model: callingModel(missing), tools });
    await expect(agent.invoke(go)).rejects.toBeInstanceOf(ExecutionError);
  });

  it("are messages when that is said, whatever the middleware would do", async () => {
    const middleware = [mcpMiddleware({ toolErrors: "throw" })];
    const said = await (await weatherClient({ handleToolErrors: true })).getTools();
    const agent = createAgent({ model: callingModel(missing), tools: said, middleware });
    expect((await agent.invoke(go)).messages.at(-1)?.text).toBe("done: error=no data for nowhere");
    const left = await (await weatherClient()).getTools();
    await expect(createAgent({ model: callingModel(missing), tools: left, middleware }).invoke(go)).rejects.toThrow();
  });

  it("are thrown outside an agent", async () => {
    const get = await tool(await weatherClient(), "get_weather");
    await expect(get.invoke({ location: "nowhere" })).rejects.toThrow("no data for nowhere");
  });

  it("end after the time their server, the client or the call allows", async () => {
    const slow = async (config: Partial<MultiServerConfig>, connection = {}) =>
      tool(await weatherClient(config, connection), "slow");
    const late = { code: "timeout" };
    await expect((await slow({ defaultToolTimeout: 300 })).invoke({ ms: 20_000 })).rejects.toMatchObject(late);
    const own = await slow({ defaultToolTimeout: 50 }, { defaultToolTimeout: 30_000 });
    expect(await own.invoke({ ms: 300 })).toBe("at last");
    await expect(own.invoke({ ms: 20_000 }, { timeout: 300 })).rejects.toThrow();
    const patient = await slow({ defaultToolTimeout: 50 });
    expect(await patient.invoke({ ms: 300 }, { timeout: 30_000 })).toBe("at last");
    const stop = new AbortController();
    const cancelled = patient.invoke({ ms: 20_000 }, { timeout: 30_000, signal: stop.signal });
    stop.abort();
    await expect(cancelled).rejects.toThrow();
  });
});

describe("hooks", () => {
  it("change arguments and headers before the call", async () => {
    const seen: Seen[] = [];
    const asked: unknown[] = [];
    const client = await weatherClient(
      {
        beforeToolCall: ({ serverName, name, args }) => {
          asked.push([serverName, name, args]);
          return { args: { units: "metric" }, headers: { "X-Request-ID": "r1" } };
        },
      },
      {},
      seen,
    );
    await (await tool(client, "get_weather")).invoke({ location: "here" });
    expect(asked).toEqual([["weather", "get_weather", { location: "here" }]]);
    expect(seen).toEqual([{ args: { location: "here", units: "metric" }, header: "r1" }]);
  });

  it("replace the answer after it: a text, a pair, a message, a command, or nothing", async () => {
    const kinds: Record<string, unknown> = {
      text: "a text",
      pair: ["a pair", [{ type: "note" }]],
      message: new ToolMessage({ content: "a message", tool_call_id: "elsewhere" }),
    };
    const seen: unknown[] = [];
    const client = await weatherClient({
      afterToolCall: ({ args, result }) => {
        seen.push(result);
        const kind = String(args.location);
        if (kind === "nothing") return undefined;
        if (kind === "same") return { result };
        // one of the forms a hook may give, or one it may not
        return { result: kinds[kind] as string };
      },
    });
    const at = async (location: string) => call(client, "get_weather", { location });
    expect(await at("text")).toMatchObject({ content: "a text", tool_call_id: "c1", status: "success" });
    expect(await at("pair")).toMatchObject({ content: "a pair", artifact: [{ type: "note" }] });
    expect(await at("message")).toMatchObject({ content: "a message", tool_call_id: "c1" });
    expect(await at("nothing")).toMatchObject({ content: "sunny in nothing" });
    expect(await at("same")).toMatchObject({ content: "sunny in same" });
    expect(await at("unknown")).toMatchObject({ status: "error", content: expect.stringContaining("none of: a text") });
    expect(seen[0]).toEqual(["sunny in text", []]);
    expect(await (await tool(client, "get_weather")).invoke({ location: "pair" })).toBe("a pair");
  });

  it("may end the run with a Command, and see the thread", async () => {
    const threads: unknown[] = [];
    const client = await weatherClient({
      afterToolCall: (_result, state, runtime) => {
        threads.push([runtime.configurable.thread_id, Object.keys(state as object)]); // an agent's state
        return { result: new Command({ goto: "__end__" }) };
      },
    });
    const model = callingModel({ name: "get_weather", args: { location: "here" } });
    const agent = createAgent({ model, tools: await client.getTools(), middleware: [mcpMiddleware()] });
    const configurable = { configurable: { thread_id: "t1" } };
    const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] }, configurable);
    expect(messages.at(-1)).toMatchObject({ content: "Done.", status: "success" });
    expect(threads).toEqual([["t1", expect.arrayContaining(["messages"])]]);
    expect(model.turns).toHaveLength(1);
  });

  it("stand outside of interceptors", async () => {
    const order: string[] = [];
    const client = await weatherClient({
      beforeToolCall: async () => void order.push("before"),
      afterToolCall: async () => void order.push("after"),
      toolInterceptors: [
        async (request, next) => {
          order.push(`in ${request.server}/${request.name}`);
          const outcome = await next(request);
          order.push("out");
          return outcome;
        },
      ],
    });
    await (await tool(client, "get_weather")).invoke({ location: "here" });
    expect(order).toEqual(["before", "in weather/get_weather", "out", "after"]);
  });
});

describe("resources, prompts and sessions", () => {
  it("list and read resources by server", async () => {
    const client = await weatherClient();
    expect(await client.listResources()).toEqual({
      weather: expect.arrayContaining([{ uri: "weather://today", name: "Today", mimeType: "text/plain" }]),
    });
    expect(await client.listResourceTemplates("weather")).toEqual({
      weather: [{ uriTemplate: "weather://day/{day}", name: "A day" }],
    });
    expect(await client.readResource("weather", "weather://today")).toEqual([
      { uri: "weather://today", mimeType: "text/plain", text: "all dry" },
    ]);
    expect(await client.readResource("weather", "weather://map")).toEqual([
      { uri: "weather://map", mimeType: "image/png", blob: PNG },
    ]);
  });

  it("give resources as blobs: some, or all of a server, or all there are", async () => {
    const client = await weatherClient();
    const [monday] = await client.getResources("weather", { uris: "weather://day/monday" });
    expect(monday?.asString()).toBe("dry on monday");
    expect((await client.getResources("weather")).map(({ uri }) => uri).sort()).toEqual([
      "weather://map",
      "weather://today",
    ]);
    expect(await client.getResources()).toHaveLength(2);
    await expect(client.getResources(undefined, { uris: ["weather://today"] })).rejects.toThrow("name the server");
  });

  it("give prompts as LangChain's messages", async () => {
    const messages = await (await weatherClient()).getPrompt("weather", "forecast", { arguments: { place: "Rome" } });
    expect(messages).toEqual([new HumanMessage("A forecast for Rome, please")]);
    expect(messages.some((message) => AIMessage.isInstance(message))).toBe(false);
  });

  it("give a session for what the tools do not cover", async () => {
    const seen: Seen[] = [];
    const client = await weatherClient({}, {}, seen);
    const session = await client.getClient("weather", { headers: { "X-Request-ID": "r2" } });
    expect((await session?.listTools())?.tools.map(({ name }) => name)).toContain("get_weather");
    const result = await session?.callTool({ name: "get_weather", arguments: { location: "here" } });
    expect(result?.content).toEqual([{ type: "text", text: "sunny in here" }]);
    expect(seen[0]?.header).toBe("r2");
    expect(await session?.readResource({ uri: "weather://today" })).toMatchObject({ contents: [{ text: "all dry" }] });
    expect((await session?.listPrompts())?.prompts).toMatchObject([{ name: "forecast" }]);
    expect((await session?.getPrompt({ name: "forecast", arguments: { place: "x" } }))?.messages).toHaveLength(1);
    expect((await session?.listResources())?.resources).toHaveLength(2);
    expect((await session?.listResourceTemplates())?.resourceTemplates).toHaveLength(1);
    expect(session?.info()?.health).toBe("up");
  });

  it("send the headers that come with a list of servers", async () => {
    const seen: Seen[] = [];
    const client = await weatherClient({}, {}, seen);
    const tools = await client.getTools(["weather"], { headers: { "X-Request-ID": "r3" } });
    await tools.find(({ name }) => name === "get_weather")?.invoke({ location: "here" });
    expect(seen[0]?.header).toBe("r3");
  });
});
