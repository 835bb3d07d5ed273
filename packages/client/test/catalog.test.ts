import { describe, expect, it } from "vitest";
import { type ClientOptions, renderText, type ServerConfig } from "../src/index.ts";
import { closeAfterEach, connect, STUBS, type Stub, type StubBehavior, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
const object = { type: "object" };
const tool = (name: string, more: object = {}) => ({ name, inputSchema: object, ...more });
const page = (tools: unknown[], more: object = {}) => ({ tools, ttlMs: 60_000, cacheScope: "private", ...more });
const echoName: StubBehavior["onCall"] = ({ params }) => ({ content: [{ type: "text", text: String(params.name) }] });
const names = (tools: readonly { wireName: string }[]) => tools.map(({ wireName }) => wireName);
const one = (server: Stub, more: object = {}, options: Omit<ClientOptions, "servers"> = {}) =>
  connect({ s: { ...server.config, ...more } as ServerConfig }, options);

describe.each(STUBS)("the tools of a server over %s", (_, stub) => {
  it("A4: have legal, unique names that are the same on every run; the wire keeps the original", async () => {
    const originals = ["admin.tools/list", "x".repeat(90), "weather 北京"];
    const server = await start(stub({ tools: originals, onCall: echoName }));
    const client = one(server);
    const tools = await client.listTools();
    for (const { name } of tools) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(new Set(tools.map(({ name }) => name)).size).toBe(3);
    expect((await one(server).listTools()).map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
    for (const { name, wireName } of tools) expect(renderText((await client.dispatch(name)).content)).toBe(wireName);
  });

  it("A5: of one name but two meanings are not used, reported, and refused by a typed error that tells both", async () => {
    const twice = [tool("a", { description: "reads" }), tool("a", { description: "deletes" }), tool("b")];
    const server = await start(stub({ tools: twice }));
    const client = one(server);
    expect(names(await client.listTools())).toEqual(["b"]);
    const [problem] = client.servers()[0]?.problems ?? [];
    expect(problem).toMatchObject({ tool: "a", reason: expect.stringMatching(/"reads" and "deletes"/) });
    await expect(client.callTool("s", "a")).rejects.toMatchObject({ code: "ambiguous_tool", maybeExecuted: false });
    await expect(client.callTool("s", "a")).rejects.toThrow(/"reads" and "deletes"/);
    expect(server.count("tools/call")).toBe(0);
  });

  it("A5: listed twice with one definition are one tool, and that is reported", async () => {
    const server = await start(stub({ tools: ["a", "a"] }));
    const client = one(server);
    expect(names(await client.listTools())).toEqual(["a"]);
    expect(client.servers()[0]?.problems).toEqual([
      { tool: "a", reason: "the server lists it twice, with one definition" },
    ]);
  });

  it("A5: of one name on two servers are prefixed, or with plain names a typed error that tells both", async () => {
    const a = await start(stub({ tools: ["echo"], onCall: () => ({ content: [{ type: "text", text: "from a" }] }) }));
    const b = await start(stub({ tools: ["echo"], onCall: () => ({ content: [{ type: "text", text: "from b" }] }) }));
    const client = connect({ a: a.config, b: b.config });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["mcp_a_echo", "mcp_b_echo"]);
    expect(renderText((await client.dispatch("mcp_b_echo")).content)).toBe("from b");
    const plain = connect({ a: a.config, b: b.config }, { naming: "plain" });
    await expect(plain.listTools()).rejects.toMatchObject({ code: "name_collision" });
    await expect(plain.listTools()).rejects.toThrow(/"echo" of server "a" and "echo" of server "b"/);
  });

  it("A6: are usable beside a malformed one, which is reported with the reason", async () => {
    const server = await start(stub({ tools: [{ name: "a" }, { inputSchema: object }, tool("good")] }));
    const client = one(server);
    expect(names(await client.listTools())).toEqual(["good"]);
    expect(client.servers()[0]?.problems).toEqual([
      { tool: "a", reason: "it has no inputSchema object" },
      { tool: "#2", reason: "it has no name" },
    ]);
    expect(await client.callTool("s", "good")).toMatchObject({ isError: false });
  });

  it("are left out and reported where they can only run as a task; those that may stay", async () => {
    const task = (taskSupport: string) => ({ execution: { taskSupport } });
    const server = await start(
      stub({
        tools: [tool("research", task("required")), tool("report", task("optional")), tool("read", task("forbidden"))],
      }),
    );
    const client = one(server);
    expect(names(await client.listTools())).toEqual(["read", "report"]);
    expect(client.servers()[0]?.problems).toEqual([
      {
        tool: "research",
        reason: "it can only run as a task, and its server does not offer the tasks extension of revision 2026-07-28",
      },
    ]);
  });

  it("C3: come from all pages, an empty cursor included; a loop is cut with a typed error", async () => {
    const pages = await start(
      stub({
        on: {
          "tools/list": ({ params }) =>
            params.cursor === undefined ? page([tool("a")], { nextCursor: "" }) : page([tool("b")]),
        },
      }),
    );
    expect(names(await one(pages).listTools())).toEqual(["a", "b"]);
    const loop = await start(stub({ on: { "tools/list": () => page([tool("a")], { nextCursor: "same" }) } }));
    const client = one(loop);
    expect(await client.listTools()).toEqual([]);
    expect(client.servers()[0]?.error).toMatchObject({ code: "pagination_loop" });
    await expect(one(loop, { required: true }).listTools()).rejects.toMatchObject({ code: "pagination_loop" });
    expect(loop.count("tools/list")).toBe(4);
  });
});

describe("a list without end", () => {
  const endless = (more: (n: number) => object) =>
    start(stubHttp({ on: { "tools/list": ({ nth }) => page([], { nextCursor: `c${nth}`, ...more(nth) }) } }));
  it("is cut when its cursor always changes", async () => {
    const client = one(await endless(() => ({})), { required: true });
    await expect(client.listTools()).rejects.toMatchObject({ code: "pagination_loop" });
  });
  it("is cut above ten thousand tools", async () => {
    const many = Array.from({ length: 3_000 }, (_, i) => tool(`t${i}`));
    const client = one(await endless(() => ({ tools: many })), { required: true });
    await expect(client.listTools()).rejects.toMatchObject({ code: "list_too_large" });
    await expect(client.listTools()).rejects.toThrow(/more than 10,000 elements/);
  });
  it("is cut above its size", async () => {
    const large = [tool("t", { description: "x".repeat(7 * 1024 * 1024) })];
    const client = one(await endless(() => ({ tools: large })), { required: true });
    await expect(client.listTools()).rejects.toMatchObject({ code: "list_too_large" });
  });

  it("is cut above its size when it consists of cursors", async () => {
    let page = 0;
    const nextCursor = () => `${++page}${"c".repeat(7 * 1024 * 1024)}`;
    const server = await start(stubHttp({ on: { "tools/list": () => ({ tools: [], nextCursor: nextCursor() }) } }));
    const client = one(server, { required: true });
    await expect(client.listTools()).rejects.toMatchObject({ code: "list_too_large" });
    expect(page).toBeLessThan(7);
  });
});

describe("a selection of tools", () => {
  const hints = (annotations: object) => ({ annotations });
  const tools = [
    tool("get_order", hints({ readOnlyHint: true })),
    tool("get_all", hints({ readOnlyHint: true, openWorldHint: false })),
    tool("refund", hints({ destructiveHint: false, idempotentHint: true })),
    tool("admin.users/delete"),
  ];
  const offered = async (selection: object) => {
    const client = one(await start(stubHttp({ tools })), selection);
    return names(await client.listTools());
  };
  it.each([
    [{ include: ["get_*"] }, ["get_all", "get_order"]],
    [{ include: ["get_{all,x}", "refund"] }, ["get_all", "refund"]],
    [{ exclude: ["admin*"] }, ["get_all", "get_order", "refund"]],
    [{ include: ["*"], exclude: ["get_order"] }, ["admin.users/delete", "get_all", "refund"]],
    [{ include: [{ readOnly: true }] }, ["get_all", "get_order"]],
    [{ exclude: [{ destructive: true }] }, ["get_all", "get_order", "refund"]],
    [{ include: [{ readOnly: true, openWorld: false }] }, ["get_all"]],
    [{ include: [{ name: "get_*", openWorld: true }, { idempotent: true }] }, ["get_order", "refund"]],
    [{ include: [] }, []],
  ])("%j", async (selection, expected) => {
    expect(await offered(selection)).toEqual(expected);
  });

  it("also says which tools may be called, by whatever name an interceptor gives them", async () => {
    const server = await start(stubHttp({ tools }));
    const client = one(server, { include: ["get_*"] });
    await expect(client.callTool("s", "refund")).rejects.toMatchObject({
      name: "ConfigError",
      code: "tool_not_allowed",
    });
    await expect(client.callTool("s", "unlisted")).rejects.toMatchObject({ code: "tool_not_allowed" });
    await expect(client.dispatch("mcp_s_refund")).rejects.toMatchObject({ code: "unknown_tool" });
    expect(await client.callTool("s", "get_order")).toMatchObject({ isError: false });
    const rename = one(
      server,
      { exclude: [{ destructive: true }] },
      {
        interceptors: [(request, next) => next(request.with({ name: "admin.users/delete" }))],
      },
    );
    await expect(rename.callTool("s", "get_order")).rejects.toMatchObject({ code: "tool_not_allowed" });
    expect(server.count("tools/call")).toBe(1);
  });

  it("holds when the server does not list: a tool without hints is taken for the worst", async () => {
    const server = await start(stubHttp({ on: { "tools/list": (_, reply) => reply.error(-32_603, "broken") } }));
    const client = one(server, { include: [{ readOnly: true }] });
    await expect(client.callTool("s", "get_order")).rejects.toMatchObject({ code: "tool_not_allowed" });
  });

  it("reports a pattern that names nothing, with the one that was probably meant", async () => {
    const client = one(await start(stubHttp({ tools })), {
      include: ["get_*", "qet_*", "zebra"],
      exclude: ["get_ordr", { name: "admni.*", destructive: true }, { idempotent: true }, "*.nothing"],
    });
    await client.listTools();
    const nothing = (list: string) => `${list} names it, but the server has no such tool`;
    expect(client.servers()[0]?.problems).toEqual([
      { tool: "qet_*", reason: `${nothing("include")}; did you mean "get_*"?` },
      { tool: "zebra", reason: nothing("include") },
      { tool: "get_ordr", reason: `${nothing("exclude")}; did you mean "get_order"?` },
      { tool: "admni.*", reason: `${nothing("exclude")}; did you mean "admin.*"?` },
      { tool: "*.nothing", reason: nothing("exclude") },
    ]);
  });

  it.each([
    [{ include: "get_*" }, "servers.s.include must be a list"],
    [{ include: ["!get_*"] }, 'servers.s.include[0] must not begin with "!"; put the pattern under exclude'],
    [{ exclude: [{ readonly: true }] }, 'did you mean "readOnly"?'],
    [{ exclude: [{}] }, "servers.s.exclude[0] is empty"],
    [{ include: [{ readOnly: "yes" }] }, "readOnly must be true or false"],
    [{ includes: [] }, 'did you mean "include"?'],
  ])("refuses %j", (selection, message) => {
    expect(() => connect({ s: { url: "http://127.0.0.1:1/", ...selection } as ServerConfig })).toThrow(message);
  });
});

describe("a kept list", () => {
  it("is used as long as its server says, whatever it announces", async () => {
    const kept = await start(stubHttp({ on: { "tools/list": () => page(["a"].map((name) => tool(name))) } }));
    const client = one(kept);
    await client.listTools();
    await client.listTools();
    expect(kept.count("tools/list")).toBe(1);
    const stale = await start(stubHttp({ on: { "tools/list": () => page([tool("a")], { ttlMs: 0 }) } }));
    const other = one(stale);
    await other.listTools();
    await other.listTools();
    await other.callTool("s", "a");
    expect(stale.count("tools/list")).toBe(2);
  });
  it("lasts as long as the shortest word of its pages", async () => {
    const server = await start(
      stubHttp({
        on: {
          "tools/list": ({ params }) =>
            params.cursor ? page([tool("b")], { ttlMs: 0 }) : page([tool("a")], { nextCursor: "2" }),
        },
      }),
    );
    const client = one(server);
    await client.listTools();
    await client.listTools();
    expect(server.count("tools/list")).toBe(4);
  });
  it("of the older revision is asked for again when the server announces a change", async () => {
    const listed = ["a"];
    const server = await start(stubHttp({ era: "legacy", tools: () => listed }));
    const client = one(server);
    expect(names(await client.listTools())).toEqual(["a"]);
    listed.push("b");
    expect(names(await client.listTools())).toEqual(["a"]);
    const announced = async () => {
      // the stream for announcements may not be open yet
      server.push("notifications/tools/list_changed");
      return names(await client.listTools());
    };
    await expect.poll(announced, { timeout: 10_000 }).toEqual(["a", "b"]);
  });
});
