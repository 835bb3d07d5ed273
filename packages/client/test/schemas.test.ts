import { describe, expect, it } from "vitest";
import { type ClientOptions, renderText } from "../src/index.ts";
import type { ToolResult } from "../src/types/calls.ts";
import { ALL_STUBS, closeAfterEach, connect, STUBS, type Stub, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
const textOf = (result: ToolResult) => renderText(result.content, result.structured);
const tool = (name: string, inputSchema: object, more: object = {}) => ({ name, inputSchema, ...more });
const input = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
const open = (server: Stub, more: Partial<ClientOptions> = {}) => connect({ s: server.config }, more);

const NULLABLE = input({
  names: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }], default: null },
  n: { type: ["integer", "null"] },
});
const branch = (kind: string, size: string) => ({
  type: "object",
  properties: { kind: { const: kind }, [size]: { type: "number" } },
  required: ["kind", size],
});
const SHAPE = input({ shape: { oneOf: [branch("circle", "r"), branch("square", "side")] } }, { required: ["shape"] });
const EITHER = { type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] };

describe.each(ALL_STUBS)("arguments for a server over %s (%s)", (_, era, stub) => {
  it("A1: may be null where the schema says so; a wrong one is refused by its name before it is sent", async () => {
    const server = await start(stub({ era, tools: [tool("t", NULLABLE)] }));
    const client = open(server);
    expect(await client.callTool("s", "t", { names: null, n: null })).toMatchObject({ isError: false });
    expect(await client.callTool("s", "t", { names: ["a"], n: 1 })).toMatchObject({ isError: false });
    const refused = await client.callTool("s", "t", { n: "x" });
    expect(refused).toMatchObject({ isError: true, problem: { code: "invalid_arguments" } });
    expect(textOf(refused)).toContain('- n: must be an integer or null, got "x"');
    expect(server.count("tools/call")).toBe(2);
    const [listed] = await client.listTools();
    expect(listed?.inputSchema).toEqual(NULLABLE);
  });

  it("that a header repeats may be null, which means not given; others may not", async () => {
    const schema = input({ region: { type: "string", "x-mcp-header": "Region" }, n: { type: "integer" } });
    const server = await start(stub({ era, tools: [tool("t", schema)] }));
    const client = open(server);
    expect(await client.callTool("s", "t", { region: null, n: 1 })).toMatchObject({ isError: false });
    expect(textOf(await client.callTool("s", "t", { region: null, n: null }))).toContain("- n: must be an integer");
    expect(server.count("tools/call")).toBe(1);
  });

  it("A2: choose one of several shapes", async () => {
    const server = await start(stub({ era, tools: [tool("t", SHAPE)] }));
    const client = open(server);
    expect(await client.callTool("s", "t", { shape: { kind: "circle", r: 1 } })).toMatchObject({ isError: false });
    const refused = await client.callTool("s", "t", { shape: { kind: "triangle" } });
    expect(textOf(refused)).toContain('- shape.kind: must be one of "circle", "square", got "triangle"');
    expect(server.count("tools/call")).toBe(1);
  });

  it("A3: that meet no alternative of the root are refused with a readable reason, as a result or thrown", async () => {
    const server = await start(stub({ era, tools: [tool("t", EITHER)] }));
    const refused = await open(server).callTool("s", "t", {});
    expect(textOf(refused)).toContain('- arguments: needs "a" or "b"');
    const strict = open(server, { toolErrors: "throw" });
    await expect(strict.callTool("s", "t", {})).rejects.toMatchObject({
      name: "ExecutionError",
      code: "invalid_arguments",
      maybeExecuted: false,
      data: { tool: "t" },
    });
    expect(server.count("tools/call")).toBe(0);
    expect(await strict.callTool("s", "t", { b: 1 })).toMatchObject({ isError: false });
  });
});

describe("arguments that are no object", () => {
  it.each([
    ["text", 'got "text"'],
    [["a", "b"], "got a list of 2"],
    [null, "got null"],
    [7, "got 7"],
  ])("are refused as such before interceptors see them: %j", async (args, got) => {
    const server = await start(stubHttp({ tools: [tool("t", input({ a: {} }, { required: ["a"] }))] }));
    let seen = 0;
    const client = open(server, {
      interceptors: [
        (request, next) => {
          seen += 1;
          return next(request);
        },
      ],
    });
    const refused = await client.callTool("s", "t", args as never);
    expect(refused).toMatchObject({ isError: true, problem: { code: "invalid_arguments", data: { tool: "t" } } });
    expect(textOf(refused)).toContain(`- arguments: must be an object, ${got}`);
    expect(textOf(refused)).not.toContain("missing");
    await client.listTools();
    expect(textOf(await client.dispatch("mcp_s_t", args as never))).toContain("must be an object");
    const strict = open(server, { toolErrors: "throw" });
    await expect(strict.callTool("s", "t", args as never)).rejects.toMatchObject({
      code: "invalid_arguments",
      maybeExecuted: false,
    });
    expect([seen, server.count("tools/call")]).toEqual([0, 0]);
  });
});

describe("a schema from a server", () => {
  const DIALECT_07 = "http://json-schema.org/draft-07/schema#";
  const call = async (inputSchema: object, args: Record<string, unknown>) => {
    const server = await start(stubHttp({ tools: [tool("t", inputSchema)] }));
    const client = open(server);
    const result = await client.callTool("s", "t", args);
    return { text: textOf(result), isError: result.isError, problems: client.servers()[0]?.problems ?? [] };
  };

  it.each([
    [
      "draft-07, by its $schema",
      { $schema: DIALECT_07, ...input({ p: { type: "array", items: [{ type: "string" }] } }) },
    ],
    ["draft-07, unsaid", input({ p: { type: "array", items: [{ type: "string" }] } })],
    [
      "2019-09",
      { $schema: "https://json-schema.org/draft/2019-09/schema", ...input({ p: { items: [{ type: "string" }] } }) },
    ],
    ["2020-12", input({ p: { type: "array", prefixItems: [{ type: "string" }] } })],
    ["with a local reference", { ...input({ p: { $ref: "#/$defs/p" } }), $defs: { p: { items: { type: "string" } } } }],
    [
      "with an $id of its own",
      {
        $id: "https://x.test/a",
        ...input({ p: { $ref: "https://x.test/a#/$defs/p" } }),
        $defs: { p: { items: { type: "string" } } },
      },
    ],
  ])("is read: %s", async (_, schema) => {
    expect(await call(schema, { p: ["x"] })).toMatchObject({ isError: false, problems: [] });
    const refused = await call(schema, { p: [1] });
    expect(refused.text).toContain("- p[0]: must be a string, got 1");
  });

  it("may have formats nobody knows and patterns of the older rules", async () => {
    const schema = input({ p: { type: "string", format: "moon-phase", pattern: "^[\\w-.]+$" } });
    expect(await call(schema, { p: "a-b.c" })).toMatchObject({ isError: false, problems: [] });
    expect((await call(schema, { p: "a b" })).text).toContain("- p: must match pattern");
  });

  it("may call itself asynchronous: it is checked like any other", async () => {
    const { text } = await call({ ...input({ p: { type: "string" } }), $async: true }, { p: 1 });
    expect(text).toContain("- p: must be a string, got 1");
  });

  it("is used without a pattern that is none here, and without what depends on it", async () => {
    const schema = input(
      { p: { type: "string", pattern: "(?i)abc" } },
      {
        patternProperties: { "(?i)x": { type: "string" } },
        additionalProperties: false,
      },
    );
    const fine = await call(schema, { p: "zzz", x: "1" });
    expect(fine.isError).toBe(false);
    expect(fine.problems.map(({ reason }) => reason)).toEqual([
      expect.stringMatching(/pattern that is not checked \(\.patternProperties: "\(\?i\)x" is no regular expression/),
      expect.stringMatching(/\(\.properties\.p\.pattern: "\(\?i\)abc" is no regular expression/),
    ]);
    expect((await call(schema, { p: 1 })).text).toContain("- p: must be a string, got 1");
  });

  it.each([
    [
      "a reference to the network",
      input({ p: { $ref: "https://example.com/s.json" } }),
      /\.properties\.p\.\$ref: .* points outside the document/,
    ],
    ["a reference to nothing", input({ p: { $ref: "#/$defs/none" } }), /points at nothing/],
    ["a type that is none", input({ p: { type: "int" } }), /\.properties\.p\.type: "int" is no type/],
    [
      "a dialect that is not supported",
      { $schema: "https://example.com/dialect", ...input({ p: { type: "number" } }) },
      /the dialect "https:\/\/example\.com\/dialect" is not supported/,
    ],
    ["a keyword with a wrong value", input({ p: { minimum: "5" } }), /cannot be used \(minimum value must be/],
  ])("that has %s leaves the tool usable unchecked, and is reported", async (_, schema, reason) => {
    const { isError, problems } = await call(schema, { p: "anything" });
    expect(isError).toBe(false);
    expect(problems).toEqual([{ tool: "t", reason: expect.stringMatching(reason) }]);
    expect(problems[0]?.reason).toContain("arguments are sent unchecked");
  });

  it("may point at a definition that is only true", async () => {
    const schema = { ...input({ p: { $ref: "#/$defs/any" }, n: { type: "number" } }), $defs: { any: true } };
    const { problems, text } = await call(schema, { p: "anything", n: "x" });
    expect(problems).toEqual([]);
    expect(text).toContain('- n: must be a number, got "x"');
  });

  it("whose pattern backtracks for ever does not hold the client", async () => {
    const began = Date.now();
    const { isError, problems } = await call(input({ p: { type: "string", pattern: "^(a|a)*$" } }), {
      p: `${"a".repeat(40)}!`,
    });
    expect(Date.now() - began).toBeLessThan(20_000);
    expect(isError).toBe(false);
    expect(problems[0]?.reason).toMatch(/was stopped/);
  });

  it("that refers to itself without end does not hold the client", async () => {
    const schema = { type: "object", $defs: { a: { $ref: "#/$defs/a" } }, properties: { p: { $ref: "#/$defs/a" } } };
    expect(await call(schema, { p: 1 })).toMatchObject({ isError: false, problems: [{ tool: "t" }] });
  });

  it("that is nested without end costs its own tool only", async () => {
    let deep: object = { type: "string" };
    for (let i = 0; i < 3_000; i++) deep = { items: deep };
    const server = await start(stubHttp({ tools: [tool("deep", input({ p: deep })), "good"] }));
    const client = open(server);
    expect((await client.listTools()).map(({ wireName }) => wireName)).toEqual(["good"]);
    expect(client.servers()[0]?.problems).toEqual([{ tool: "deep", reason: "it is nested deeper than 200 levels" }]);
  });

  it("is asked for again before a call is refused by an old one", async () => {
    let type = "string";
    const server = await start(
      stubHttp({
        on: { "tools/list": () => ({ tools: [tool("t", input({ p: { type } }))], ttlMs: 0, cacheScope: "private" }) },
      }),
    );
    const client = open(server);
    await client.listTools();
    type = "number";
    expect(await client.callTool("s", "t", { p: 1 })).toMatchObject({ isError: false });
    expect(await client.callTool("s", "t", { p: "x" })).toMatchObject({ isError: true });
  });

  it("is compared with what goes on the wire: a date is a text there", async () => {
    const schema = input({ p: { type: "string" } });
    expect(await call(schema, { p: new Date(0) as never, q: undefined })).toMatchObject({ isError: false });
  });

  it("does not show what an interceptor put into the arguments", async () => {
    const server = await start(stubHttp({ tools: [tool("t", input({ token: { type: "string", maxLength: 3 } }))] }));
    const client = open(server, {
      interceptors: [(request, next) => next(request.with({ args: { ...request.args, token: "s3cret-token" } }))],
    });
    const refused = await client.callTool("s", "t", {});
    expect(textOf(refused)).toContain("- token: must NOT have more than 3 characters, got a string");
    expect(textOf(refused)).not.toContain("s3cret");
  });

  it("is waited for as long as the call's own time allows", async () => {
    const server = await start(stubHttp({ on: { "tools/list": () => undefined } }));
    const client = open(server);
    const began = Date.now();
    expect(await client.callTool("s", "t", {}, { timeoutMs: 1_000 })).toMatchObject({ isError: false });
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  it("is not needed: a server that cannot list is called all the same", async () => {
    const server = await start(stubHttp({ on: { "tools/list": (_, reply) => reply.error(-32_603, "broken") } }));
    const client = open(server);
    expect(textOf(await client.callTool("s", "t", { a: 1 }))).toBe('{"a":1}');
    await client.callTool("s", "t");
    expect(server.count("tools/list")).toBe(1);
  });
});

describe.each(STUBS)("results of a server over %s", (transport, stub) => {
  const OUTPUT = { outputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } };
  const answering = (result: Record<string, unknown>, more: object = OUTPUT) =>
    start(stub({ tools: [tool("t", { type: "object" }, more)], onCall: () => result }));

  it("B1: structured only is JSON text for the model and an object for the program", async () => {
    const server = await answering({ structuredContent: { a: 1 } }, {});
    const result = await open(server).callTool("s", "t");
    expect(textOf(result)).toBe('{"a":1}');
    expect(renderText(result.content)).toBe('{"a":1}');
    expect(result).toMatchObject({ isError: false, structured: { a: 1 }, raw: { structuredContent: { a: 1 } } });
  });

  it("B2: an error keeps its text, whatever its structured content is", async () => {
    const text = [{ type: "text", text: "rate limited" }];
    const server = await answering({ isError: true, content: text, structuredContent: { wrong: true } });
    const client = open(server);
    await client.listTools();
    const result = await client.callTool("s", "t");
    expect(result).toMatchObject({ isError: true, content: text });
    expect(result.problem).toBeUndefined();
  });

  it("that do not fit their outputSchema become errors that name the path and keep what was said", async () => {
    const text = [{ type: "text", text: "done" }];
    const server = await answering({ content: text, structuredContent: { a: "one" } });
    const result = await open(server).callTool("s", "t");
    expect(result).toMatchObject({ isError: true, problem: { code: "invalid_output" } });
    expect(result.structured).toBeUndefined();
    expect(result.raw).toMatchObject({ structuredContent: { a: "one" }, content: text });
    expect(textOf(result)).toMatch(
      /does not fit.*\(a: must be a number, got "one"\).*check before you repeat it\.\ndone$/,
    );
    const strict = open(server, { toolErrors: "throw" });
    await expect(strict.callTool("s", "t")).rejects.toMatchObject({ code: "invalid_output" });
  });

  it("that miss the structured content they declare say so; right ones pass", async () => {
    const missing = await open(await answering({ content: [] })).callTool("s", "t");
    expect(textOf(missing)).toContain("structured content: missing");
    const right = await open(await answering({ content: [], structuredContent: { a: 1 } })).callTool("s", "t");
    expect(right).toMatchObject({ isError: false, structured: { a: 1 } });
  });

  it("B4: above the limit fail their own call, and the next works", async () => {
    const server = await start(
      stub({
        onCall: ({ params }) => {
          const { size } = params.arguments as { size: number };
          return { content: [{ type: "text", text: "x".repeat(size) }] };
        },
      }),
    );
    const client = open(server, { maxResultBytes: 10_000 });
    await expect(client.callTool("s", "t", { size: 20_000 })).rejects.toMatchObject({ code: "too_large" });
    await expect(client.callTool("s", "t", { size: 20_000 })).rejects.toThrow(/result too large \(limit 10000 bytes\)/);
    expect(textOf(await client.callTool("s", "t", { size: 20_000 }, { maxResultBytes: 30_000 }))).toHaveLength(20_000);
    expect(textOf(await client.callTool("s", "t", { size: 5 }))).toBe("xxxxx");
    await expect(client.callTool("s", "t", {}, { maxResultBytes: 0 })).rejects.toMatchObject({
      code: "invalid_option",
    });
  });

  it("B4: of 30 MB fail their own call by default, and come through where the limit is raised", async () => {
    const onCall = () => ({ content: [{ type: "text", text: "x".repeat(30_000_000) }] });
    const server = await start(
      stub({
        tools: ["t", "small"],
        onCall: (request, reply) => (request.params.name === "t" ? onCall() : reply.result({ content: [] })),
      }),
    );
    const client = open(server);
    await expect(client.callTool("s", "t")).rejects.toThrow(/result too large \(limit \d+ bytes\)/);
    expect(await client.callTool("s", "small")).toMatchObject({ isError: false });
    if (transport === "stdio") expect(server.opened).toBe(1);
    const patient = open(server, { maxResultBytes: 40_000_000 });
    expect(textOf(await patient.callTool("s", "t"))).toHaveLength(30_000_000);
  }, 60_000);
});

describe("a schema of the kind that", () => {
  const outcome = async (schema: object, args: Record<string, unknown>) => {
    const server = await start(stubHttp({ tools: [tool("t", schema)] }));
    const client = open(server);
    const tools = await client.listTools();
    const result = await client.callTool("s", "t", args);
    return { tools, result, text: textOf(result), problems: client.servers()[0]?.problems };
  };

  it.each([19.99, 0.07, 4.35, 1e6, 0])("asks for multiples of 0.01 takes %s", async (a) => {
    const schema = input({ a: { type: "number", multipleOf: 0.01 } });
    expect((await outcome(schema, { a })).result.isError).toBe(false);
    expect((await outcome(schema, { a: 0.005 })).text).toContain("a: must be multiple of 0.01, got 0.005");
  });

  it("refers to its own root is checked on every level", async () => {
    const node = input({ value: { type: "integer" }, child: { $ref: "#" } });
    const found = await outcome(node, { child: { child: { value: "x" } } });
    expect(found.text).toContain('child.child.value: must be an integer, got "x"');
    expect(found.problems).toEqual([]);
  });

  it("has no type is used as an object's, and that is reported", async () => {
    const schema = { $ref: "#/$defs/Input", $defs: { Input: input({ a: {} }, { required: ["a"] }) } };
    const found = await outcome(schema, {});
    expect(found.tools[0]?.inputSchema).toEqual({ type: "object", ...schema });
    expect(found.text).toContain("a: required, but missing");
    expect(found.problems).toEqual([{ tool: "t", reason: 'its inputSchema has no "type"; it is taken for "object"' }]);
  });

  it("allows fifty thousand values is refused with a message that can be read", async () => {
    const values = Array.from({ length: 50_000 }, (_, n) => `v${n}`);
    const { text } = await outcome(input({ a: { enum: values } }), { a: "x" });
    expect(text).toMatch(/a: must be one of "v0", "v1", .* and \d+ more, got "x"/);
    expect(text.length).toBeLessThan(2_000);
  });

  it("takes long to compile does not cost its tool", async () => {
    const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`p${n}`, { type: "string" }]));
    expect((await outcome(input(properties), { p1: "x" })).result.isError).toBe(false);
  });
});

it("a tool whose outputSchema is null has none", async () => {
  const server = await start(stubHttp({ tools: [tool("t", { type: "object" }, { outputSchema: null })] }));
  const client = open(server);
  expect((await client.listTools()).map(({ wireName }) => wireName)).toEqual(["t"]);
  expect(client.servers()[0]?.problems).toEqual([]);
});
