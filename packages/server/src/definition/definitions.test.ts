import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { alice, ask, call, listed, root, said } from "../../test/ask.ts";
import {
  createServer,
  definePrompt,
  defineResource,
  defineTool,
  jsonSchema,
  type ServerOptions,
  type TenonServer,
  type ToolContext,
  text,
} from "../index.ts";

const make = (options: Partial<ServerOptions> = {}): TenonServer =>
  createServer({ name: "test", version: "1", logSink: () => undefined, ...options });

describe("a tool's types", () => {
  const server = make();
  it("come from Zod", () => {
    server.tool(
      "zod",
      { input: z.object({ n: z.int(), at: z.string().optional() }), output: z.object({ m: z.number() }) },
      (args, ctx) => {
        expectTypeOf(args).toEqualTypeOf<{ n: number; at?: string | undefined }>();
        expectTypeOf(ctx.lifespan).toEqualTypeOf<undefined>();
        return { m: args.n };
      },
    );
    // @ts-expect-error the output says m is a number
    server.tool("zod2", { output: z.object({ m: z.number() }) }, () => ({ m: "1" }));
    server.tool("zod3", { output: z.object({ m: z.number() }) }, () => text("one", { m: 1 }));
  });
  it("come from Valibot", () => {
    const input = toStandardJsonSchema(v.object({ n: v.number(), tags: v.optional(v.array(v.string())) }));
    server.tool("valibot", { input }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ n: number; tags?: string[] | undefined }>();
      return args.n;
    });
  });
  it("come from ArkType", () => {
    server.tool("arktype", { input: type({ n: "number", "tags?": "string[]" }) }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ n: number; tags?: string[] }>();
      return args.n;
    });
  });
  it("are open for JSON Schema, or what the author says", () => {
    server.tool("raw", { input: { type: "object", properties: { n: { type: "number" } } } }, (args) => {
      expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
    });
    server.tool(
      "said",
      { input: jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } }) },
      (args) => {
        expectTypeOf(args).toEqualTypeOf<{ n: number }>();
      },
    );
  });
  it("are empty without an input", () => {
    server.tool("none", {}, (args) => {
      expectTypeOf(args).toEqualTypeOf<Record<string, never>>();
    });
  });
  it("refuse a schema that cannot say itself as JSON Schema, before it runs and when it does", () => {
    // @ts-expect-error not wrapped
    expect(() => server.tool("bare", { input: v.object({ n: v.number() }) }, () => 1)).toThrow(
      "tool bare: input is a Valibot schema without JSON Schema: wrap it in toStandardJsonSchema(…)",
    );
  });
  it("let a definition ask for the lifespan it needs", () => {
    const query = defineTool("query", {}, (_, ctx: ToolContext<{ sql: string }>) => ctx.lifespan.sql);
    createServer({ name: "db", version: "1", lifespan: async () => ({ value: { sql: "select 1" } }) }).use(query);
    // @ts-expect-error this server opens nothing
    make().use(query);
  });
});

describe.each([
  ["zod", z.object({ n: z.int() })],
  ["valibot", toStandardJsonSchema(v.object({ n: v.pipe(v.number(), v.integer()) }))],
  ["arktype", type({ n: "number.integer" })],
  ["json schema", { type: "object", properties: { n: { type: "int" } }, required: ["n"] }],
] as const)("a tool described with %s", (_, input) => {
  const server = make().tool("double", { input }, (args) => Number(args.n) * 2);
  it("announces an integer", async () => {
    const { result } = await ask(server, "tools/list");
    expect(result?.tools).toMatchObject([
      { inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
    ]);
  });
  it("is called, and refuses what does not fit", async () => {
    expect(said(await call(server, "double", { n: 2 }))).toBe("4");
    const wrong = await call(server, "double", { n: 1.5 });
    expect(wrong.result?.isError).toBe(true);
    expect(said(wrong)).toMatch(/^Invalid arguments for double: n: /);
  });
});

describe("definitions as values", () => {
  const add = defineTool("add", { input: z.object({ a: z.number() }) }, ({ a }) => a + 1);
  const policy = defineResource("company://policy", { mimeType: "text/markdown" }, () => "# Policy");
  const reply = definePrompt("reply", { input: z.object({ id: z.string() }) }, ({ id }) => `About ${id}`);

  it("are used by any number of servers, alone or in lists", async () => {
    for (const server of [make().use(add, policy, reply), make().use([add, policy, reply])]) {
      expect(said(await call(server, "add", { a: 1 }))).toBe("2");
      expect(await listed(server, "resources")).toEqual(["company://policy"]);
      expect(await listed(server, "prompts")).toEqual(["reply"]);
    }
  });
  it("are refused twice under one name (D1)", () => {
    const twice = { code: "duplicate" };
    expect(() => make().use(add, add)).toThrow(expect.objectContaining(twice));
    expect(() => make().use(policy, policy)).toThrow(expect.objectContaining(twice));
    expect(() => make().use(reply, reply)).toThrow(expect.objectContaining(twice));
    expect(() =>
      make()
        .use(add)
        .tool("add", {}, () => 1),
    ).toThrow('Tool "add" is defined twice');
  });
  it("need to be something", () => {
    // @ts-expect-error neither a definition nor middleware
    expect(() => make().use("add")).toThrow(/use: expected a definition/);
    // @ts-expect-error no handler
    expect(() => make().tool("nothing", {})).toThrow("tool nothing: give either a handler or options.worker");
  });
});

describe("what a definition says about itself", () => {
  it("goes out: icons, meta, annotations, deprecation", async () => {
    const icons = [{ src: "https://example.com/i.png", mimeType: "image/png" }, { src: "data:image/png;base64,AA==" }];
    const server = make()
      .tool(
        "old",
        {
          description: "Refunds.",
          deprecated: "use refund_v2 instead",
          icons,
          meta: { team: "x" },
          annotations: { readOnlyHint: true },
        },
        () => 1,
      )
      .resource("a://b", { deprecated: "use a://c", size: 3, annotations: { priority: 1 } }, () => "b")
      .prompt("p", { icons, title: "P" }, () => "p");
    const { result } = await ask(server, "tools/list");
    expect(result?.tools).toEqual([
      {
        name: "old",
        description: "Refunds.\n\nDeprecated: use refund_v2 instead",
        icons,
        annotations: { readOnlyHint: true },
        _meta: { team: "x", "dev.tenon/deprecated": "use refund_v2 instead" },
        inputSchema: { type: "object", properties: {} },
      },
    ]);
    expect((await ask(server, "resources/list")).result?.resources).toMatchObject([
      { uri: "a://b", size: 3, description: "Deprecated: use a://c", annotations: { priority: 1 } },
    ]);
    expect((await ask(server, "prompts/list")).result?.prompts).toMatchObject([{ name: "p", title: "P", icons }]);
  });
  it.each(["http://example.com/i.png", "https://user:pw@example.com/i.png", "javascript:alert(1)", "data:text/html,x"])(
    "does not go out with the icon %s",
    (src) => expect(() => make().tool("t", { icons: [{ src }] }, () => 1)).toThrow(/tool t: icons\[0\]\.src must be/),
  );
  it("names the tool and the field in a schema's error", () => {
    const ref = { type: "object", properties: { a: { $ref: "http://x/y" } } };
    expect(() => make().tool("t", { input: ref }, () => 1)).toThrow(/^tool t: input\.properties\.a\.\$ref: /);
    expect(() => make().tool("t", { output: { type: "list" } }, () => 1)).toThrow(
      /^tool t: output\.type: "list" is no type/,
    );
    expect(() => make().tool("t", { input: { type: "string" } }, () => 1)).toThrow(
      /tool t: input must be the schema of an object/,
    );
    expect(() => make().tool("t", { input: z.object({ d: z.date() }) }, () => 1)).toThrow(
      /tool t: input has no JSON Schema: /,
    );
  });
  it("may be a union of objects", async () => {
    const input = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]);
    const server = make().tool("either", { input }, (args) => args);
    const { result } = await ask(server, "tools/list");
    expect(result?.tools).toMatchObject([
      { inputSchema: { type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] } },
    ]);
    expect((await call(server, "either", { b: "x" })).result?.structuredContent).toEqual({ b: "x" });
    expect((await call(server, "either", {})).result?.isError).toBe(true);
  });
});

describe("what a caller may see", () => {
  const server = make({ visibleTags: (caller) => (caller?.claims.role === "admin" ? ["admin", "beta"] : ["beta"]) })
    .tool("open", {}, () => "open")
    .tool("purge", { tags: ["admin"] }, () => "purged")
    .tool("draft", { tags: ["beta"] }, () => "drafted")
    .tool("mine", { visible: (caller) => caller?.subject === "alice" }, () => "yours")
    .tool("refund", { scopes: ["orders:refund"] }, () => "refunded")
    .resource("secret://{id}", { visible: (caller) => caller !== undefined }, ({ id }) => id)
    .prompt("audit", { tags: ["admin"] }, () => "audit");

  it("is what is listed", async () => {
    expect(await listed(server, "tools")).toEqual(["draft", "open"]);
    expect(await listed(server, "tools", { caller: alice })).toEqual(["draft", "mine", "open"]);
    expect(await listed(server, "tools", { caller: root })).toEqual(["draft", "open", "purge", "refund"]);
    expect(await listed(server, "resourceTemplates")).toEqual([]);
    expect(await listed(server, "prompts", { caller: root })).toEqual(["audit"]);
    expect(await listed(server, "prompts", { caller: alice })).toEqual([]);
  });
  it("and the rest is answered as if it did not exist", async () => {
    const unknown = (await call(server, "nothing")).error;
    const hidden = (await call(server, "purge", {}, { caller: alice })).error;
    expect(hidden).toEqual({ ...unknown, message: unknown?.message.replace("nothing", "purge") });
    expect(said(await call(server, "purge", {}, { caller: root }))).toBe("purged");
    expect((await ask(server, "resources/read", { uri: "secret://1" })).error?.code).toBe(-32602);
    expect(
      (await ask(server, "resources/read", { uri: "secret://1" }, { caller: alice })).result?.contents,
    ).toMatchObject([{ text: "1" }]);
    expect((await ask(server, "prompts/get", { name: "audit" }, { caller: alice })).error?.message).toBe(
      'Unknown prompt "audit"',
    );
  });
  it("and no suggestion tells of what is hidden", async () => {
    expect((await call(server, "purg", {}, { caller: alice })).error?.message).toBe('Unknown tool "purg"');
    expect((await call(server, "purg", {}, { caller: root })).error?.message).toContain('did you mean "purge"');
  });
  it.each(["modern", "legacy"] as const)("and a missing scope is named (%s)", async (era) => {
    for (const options of [{ era, caller: alice }, { era }]) {
      const { error } = await call(server, "refund", {}, options);
      expect(error).toMatchObject({
        code: -32602,
        message: expect.stringContaining("needs the scope orders:refund"),
        data: { reason: "insufficient_scope", scopes: ["orders:refund"] },
      });
    }
    expect(said(await call(server, "refund", {}, { era, caller: root }))).toBe("refunded");
  });
});

describe("the rules about who sees what", () => {
  it("are asked once per request, whatever the number of definitions", async () => {
    let asked = 0;
    const server = make({
      visibleTags: () => {
        asked += 1;
        return ["a"];
      },
    });
    for (let i = 0; i < 50; i++) server.tool(`t${i}`, { tags: [i % 2 ? "a" : "b"] }, () => i);
    expect(await listed(server, "tools")).toHaveLength(25);
    expect(asked).toBe(1);
  });
  it("keep everything to themselves when they fail", async () => {
    const server = make().tool("t", { visible: () => JSON.parse("password=hunter2") }, () => 1);
    for (const reply of [await ask(server, "tools/list"), await call(server, "t")]) {
      expect(JSON.stringify(reply)).toMatch(/failed \(reference/);
      expect(JSON.stringify(reply)).not.toContain("hunter2");
    }
  });
});

describe("an output described with JSON Schema", () => {
  it("is announced and held to", async () => {
    const output = { type: "object", properties: { n: { type: "int" } }, required: ["n"] };
    const server = make()
      .tool("good", { output }, () => ({ n: 1 }))
      .tool("bad", { output }, () => ({ n: "1" }));
    expect((await ask(server, "tools/list")).result?.tools).toMatchObject([
      { name: "bad" },
      { name: "good", outputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
    ]);
    expect((await call(server, "good")).result?.structuredContent).toEqual({ n: 1 });
    expect(said(await call(server, "bad"))).toMatch(/^Tool bad failed \(reference/);
  });
});

describe("definitions that come and go", () => {
  it("are listed, called and told to whoever listens", async () => {
    const server = make().tool("a", {}, () => "a1");
    const changes: unknown[] = [];
    const stop = server.onChange((change) => changes.push(change));
    server.tool("b", {}, () => "b");
    expect(await listed(server, "tools")).toEqual(["a", "b"]);
    server.replace(defineTool("a", { description: "second" }, () => "a2"));
    expect(said(await call(server, "a"))).toBe("a2");
    server.remove("tool", "b");
    expect(await listed(server, "tools")).toEqual(["a"]);
    expect((await call(server, "b")).error?.code).toBe(-32602);
    server.tool("b", {}, () => "again");
    stop();
    server.remove("tool", "b");
    expect(changes).toEqual([
      { kind: "tool", name: "b", what: "added" },
      { kind: "tool", name: "a", what: "replaced" },
      { kind: "tool", name: "b", what: "removed" },
      { kind: "tool", name: "b", what: "added" },
    ]);
  });
  it("take hints about a tool as its annotations, and say so", () => {
    for (const word of ["readOnly", "destructive", "openWorld"]) {
      const meant = `tool a has no option "${word}"; did you mean "annotations.${word}Hint"?`;
      expect(() => make().tool("a", { [word]: true } as never, () => 1)).toThrow(meant);
    }
    expect(() => make().tool("a", { readOnlyHint: true } as never, () => 1)).toThrow("annotations.readOnlyHint");
  });
  it("must exist to go", () => {
    const server = make().tool("refund", {}, () => 1);
    expect(() => server.remove("tool", "refnd")).toThrow('There is no tool "refnd"; did you mean "refund"?');
    expect(() => server.replace(definePrompt("refund", {}, () => "x"))).toThrow('There is no prompt "refund"');
  });
  it("stay when their replacement is wrong", async () => {
    const server = make().tool("a", {}, () => "still here");
    expect(() => server.replace(defineTool("a", { input: { type: "nope" } }, () => 1))).toThrow(/is no type/);
    expect(said(await call(server, "a"))).toBe("still here");
    expect(() => server.tool("a", {}, () => 1)).toThrow(/defined twice/);
  });
});
