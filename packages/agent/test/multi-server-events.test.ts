import { createServer } from "@tenon/server";
import { describe, expect, it } from "vitest";
import { type MultiServerConfig, MultiServerMCPClient } from "../src/index.ts";
import { cleanUpAfterEach, clientOf, later, math, tool, until, weatherClient } from "./multi-servers.ts";

cleanUpAfterEach();

describe("events", () => {
  it("tell progress with its call, and log messages with their server", async () => {
    const lines: string[] = [];
    const client = await weatherClient({
      onMessage: ({ level, data }, source) => lines.push(`[${source.server}] ${level} ${JSON.stringify(data)}`),
      onProgress: ({ percentage, message }, source) => {
        const origin =
          source.type === "tool" ? `${source.server}/${source.name} ${JSON.stringify(source.args)}` : "unknown";
        lines.push(`${origin} ${percentage}% ${message}`);
      },
      onInitialized: ({ server, options }) => lines.push(`${server} is up ${"url" in options}`),
    });
    const slow = await tool(client, "slow");
    expect(lines).toEqual(["weather is up true"]);
    await slow.invoke({ ms: 50 });
    await until(() => lines.length >= 3);
    expect(lines[1]).toBe('weather/slow {"ms":50} 25% a quarter');
    expect(lines[2]).toContain("[weather] warning");
    await client.setLoggingLevel("debug");
    await slow.invoke({ ms: 50 });
    await until(() => lines.some((line) => line.includes("debug")));
    await client.setLoggingLevel("weather", "error");
    const before = lines.filter((line) => line.startsWith("[weather]")).length;
    await slow.invoke({ ms: 50 });
    expect(lines.filter((line) => line.startsWith("[weather]"))).toHaveLength(before);
    await expect(client.setLoggingLevel("loud")).rejects.toThrow('no log level "loud"');
  });

  it("come in the form of the Python package as well", async () => {
    const lines: unknown[] = [];
    const client = await weatherClient({
      logLevel: "debug",
      callbacks: {
        onProgress: (progress, total, message, context) => void lines.push([progress, total, message, context]),
        onLoggingMessage: ({ level }, context) => void lines.push([level, context]),
        onElicitation: (request, context) => {
          lines.push([request.message, context]);
          return { action: "accept", content: { day: "Monday" } };
        },
      },
    });
    await (await tool(client, "slow")).invoke({ ms: 50 });
    const context = { serverName: "weather", toolName: "slow" };
    await until(() => lines.length >= 3);
    expect(lines).toEqual(
      expect.arrayContaining([
        [1, 4, "a quarter", context],
        ["debug", context],
        ["warning", context],
      ]),
    );
    expect(await (await tool(client, "book")).invoke({})).toBe("booked Monday");
    expect(lines.at(-1)).toEqual(["Which day?", { serverName: "weather", toolName: "book" }]);
  });

  it("tell that the tools changed, whichever way the handler is written", async () => {
    const server = createServer({ name: "changing", version: "1.0.0", logSink: () => {} });
    server.tool("one", {}, () => "1");
    const listening = await server.listen({ port: 0 });
    later(async () => {
      await listening.close(10);
      await server.close();
    });
    const told: unknown[] = [];
    const client = clientOf({
      mcpServers: { changing: { url: listening.url } },
      onToolsListChanged: (first, second) => told.push([first.server, second.server]),
    });
    expect(await client.getTools()).toHaveLength(1);
    server.tool("two", {}, () => "2");
    await until(() => told.length > 0);
    expect(told[0]).toEqual(["changing", "changing"]);
    expect(await client.getTools()).toHaveLength(2);
  });

  it("leave a process's standard error to whoever wants it", async () => {
    const lines: unknown[] = [];
    const client = clientOf({ mcpServers: { math }, onMessage: ({ logger, data }) => lines.push([logger, data]) });
    await client.getTools();
    await until(() => lines.length > 0);
    expect(lines).toContainEqual(["stderr", "math is here"]);
    const quiet = clientOf({
      mcpServers: { math: { ...math, stderr: "ignore" } },
      onMessage: () => lines.push("never"),
    });
    expect(await quiet.getTools()).toHaveLength(4);
    expect(lines).not.toContain("never");
  });
});

describe("a configuration that cannot be used", () => {
  const url = "http://127.0.0.1:1/mcp";
  const cases: [string, unknown, RegExp][] = [
    [
      "a misspelt option",
      { mcpServers: { a: { url } }, prefixToolNamesWithServerName: true },
      /did you mean "prefixToolNameWithServerName"/,
    ],
    ["a misspelt mcpServers", { mcpServer: { a: { url } } }, /did you mean "mcpServers"/],
    ["a misspelt option of a server", { mcpServers: { a: { url, header: {} } } }, /did you mean "headers"/],
    ["no servers", { mcpServers: {} }, /names no server/],
    ["a server without a place", { mcpServers: { a: { transport: "stdio" } } }, /needs a command/],
    ["a transport and the other's address", { mcpServers: { a: { transport: "stdio", url } } }, /expected http, sse/],
    ["a misspelt transport", { mcpServers: { a: { transport: "htp", url } } }, /did you mean "http"/],
    [
      "web sockets",
      { mcpServers: { a: { transport: "websocket", url: "ws://x" } } },
      /give a function that makes your transport/,
    ],
    ["a wrong address", { mcpServers: { a: { url: "nowhere" } } }, /must be an http or https address/],
    [
      "a provider of tokens",
      { mcpServers: { a: { url, authProvider: {} } } },
      /use auth: oauth\(\), .*StreamableHTTPClientTransport\(new URL\(url\), \{ authProvider/,
    ],
    ["somebody else's auth", { mcpServers: { a: { url, auth: {} } } }, /made by a function of @tenon\/client\/auth/],
    [
      "no restart",
      { mcpServers: { a: { command: "x", restart: { enabled: false } } } },
      /opened again only when it is next used/,
    ],
    ["no fallback", { mcpServers: { a: { url, automaticSSEFallback: false } } }, /leave it out/],
    ["another encoding", { mcpServers: { a: { command: "x", encoding: "latin1" } } }, /UTF-8 by the protocol/],
    ["a change nobody tells", { mcpServers: { a: { url } }, onResourcesUpdated: () => {} }, /read the resource again/],
    ["seconds of Python", { mcpServers: { a: { url, timeout: 30 } } }, /defaultToolTimeout/],
    [
      "a wrong place for content",
      { mcpServers: { a: { url } }, outputHandling: { image: "contents" } },
      /must be "content" or "artifact"/,
    ],
    [
      "an unknown kind of content",
      { mcpServers: { a: { url } }, outputHandling: { images: "content" } },
      /did you mean "image"/,
    ],
    [
      "a misspelt callback",
      { mcpServers: { a: { url } }, callbacks: { onProgess: () => {} } },
      /did you mean "onProgress"/,
    ],
    [
      "a text for a flag",
      { mcpServers: { a: { url } }, handleToolErrors: "false" },
      /must be true or false, got "false"/,
    ],
    [
      "no way with old questions",
      { mcpServers: { a: { url } }, legacyQuestions: "again" },
      /expected "error" or "replay"/,
    ],
    ["a wrong policy", { mcpServers: { a: { url } }, onConnectionError: "skip" }, /"throw", "ignore" or a function/],
  ];
  it.each(cases)("because of %s says what to do", (_what, config, message) => {
    // wrong on purpose
    expect(() => new MultiServerMCPClient(config as MultiServerConfig)).toThrow(message);
  });

  it("per request says what to do", async () => {
    const client = await weatherClient();
    const options = { authProvider: {} } as object;
    await expect(client.getTools(["weather"], options)).rejects.toMatchObject({ code: "unsupported_option" });
  });

  it("can be looked at", () => {
    const config = { mcpServers: { a: { url } }, onConnectionError: "ignore" } as const;
    expect(clientOf(config).config).toEqual(config);
  });
});
