import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ask, call, said } from "../../test/ask.ts";
import {
  content,
  createServer,
  file,
  image,
  type LogEntry,
  link,
  type ServerOptions,
  type ToolOptions,
  text,
} from "../index.ts";

const logged: LogEntry[] = [];
const returning = (value: unknown, options: ToolOptions = {}, more: Partial<ServerOptions> = {}) =>
  createServer({ name: "test", version: "1", logSink: (entry) => logged.push(entry), ...more }).tool(
    "t",
    options,
    () => value as never,
  );
const circle: Record<string, unknown> = { a: [] };
circle.a = [circle];
const bytes = new Uint8Array([1, 2]);

describe.each(["modern", "legacy"] as const)("what a tool returns (%s)", (era) => {
  const result = async (value: unknown, options?: ToolOptions, more?: Partial<ServerOptions>) => {
    const { result: found } = await call(returning(value, options, more), "t", {}, { era });
    return { content: found?.content, structured: found?.structuredContent, ...(found?.isError && { isError: true }) };
  };
  const words = (said: string) => [{ type: "text", text: said }];

  it.each([
    ["a string", "hi", "hi"],
    ["a number", 3, "3"],
    ["a boolean", false, "false"],
  ] as const)("%s is text, and typed for legacy programs", async (_, value, said) => {
    expect(await result(value)).toEqual({
      content: words(said),
      structured: era === "legacy" ? { result: value } : undefined,
    });
  });
  it("an object is both", async () => {
    expect(await result({ a: 1 })).toEqual({ content: words('{"a":1}'), structured: { a: 1 } });
  });
  it("an array is both where the era can carry it", async () => {
    expect(await result([1])).toEqual({ content: words("[1]"), structured: era === "modern" ? [1] : undefined });
    expect((await result([1], { output: z.array(z.number()) })).structured).toEqual(
      era === "modern" ? [1] : { result: [1] },
    );
  });
  it("undefined is nothing, null is null", async () => {
    expect(await result(undefined)).toEqual({ content: [], structured: undefined });
    expect((await result(null)).content).toEqual(words("null"));
  });
  it("helpers are blocks", async () => {
    expect(
      await result(content(["see", image(bytes, "image/png"), file("a://b", "x"), link("a://c", "c")], { n: 1 })),
    ).toEqual({
      content: [
        ...words("see"),
        { type: "image", data: "AQI=", mimeType: "image/png" },
        { type: "resource", resource: { uri: "a://b", text: "x" } },
        { type: "resource_link", uri: "a://c", name: "c" },
      ],
      structured: { n: 1 },
    });
  });
  it("a full result passes through, and is held to the declared output", async () => {
    const output = z.object({ n: z.number() });
    const built = { content: words("x"), structuredContent: { n: 1 } };
    expect(await result(built, { output })).toEqual({ content: words("x"), structured: { n: 1 } });
    expect((await result({ ...built, structuredContent: { n: "1" } }, { output })).isError).toBe(true);
    expect(await result({ content: words("no"), isError: true }, { output })).toEqual({
      content: words("no"),
      structured: undefined,
      isError: true,
    });
    expect((await result({ content: [{ type: "image", data: 3 }] })).isError).toBe(true);
    expect(logged.at(-1)).toMatchObject({
      error: { message: "Tool t returned a malformed value: content[0].data: expected a string, got number" },
    });
    const masked = await result({ content: words("x"), isError: "yes" });
    expect([masked.isError, JSON.stringify(masked.content)]).toEqual([true, expect.stringContaining("Tool t failed")]);
    expect(logged.at(-1)).toMatchObject({ error: { message: expect.stringContaining("isError: expected true or") } });
  });
  it("an object that merely has content is data", async () => {
    const page = { content: [], total: 0 };
    expect((await result(page)).structured).toEqual(page);
    const blocks = { content: [{ type: "paragraph" }] };
    expect((await result(blocks)).structured).toEqual(blocks);
  });
  it.each([
    ["a Date", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
    ["a Map", { m: new Map([["a", 1]]) }, { m: { a: 1 } }],
    ["a Set", { s: new Set([1]) }, { s: [1] }],
  ])("%s is a value the wire can carry (D3)", async (_, value, json) => {
    expect((await result(value)).structured).toEqual(json);
  });
  it.each([
    ["NaN", { n: [Number.NaN] }, "result of t.n[0] is NaN"],
    ["a BigInt", { n: 1n }, "result of t.n is a bigint"],
    ["a cycle", circle, "result of t.a[0] is a cycle"],
    ["a Map with other keys", { m: new Map([[1, 1]]) }, "result of t.m is a Map"],
    ["a typed array", { b: new Float32Array(2) }, "result of t.b is binary data"],
    ["NaN in a hand-built result", { content: [], structuredContent: { n: Number.NaN } }, "result of t.n is NaN"],
  ])("%s is an error that is loud in the log and names the path (D3)", async (_, value, message) => {
    const { isError, content: said } = await result(value);
    expect(isError).toBe(true);
    expect(JSON.stringify(said)).toMatch(/Tool t failed \(reference \w{6}\)/);
    expect(logged.at(-1)).toMatchObject({ level: "error", error: { message: expect.stringContaining(message) } });
  });
  it("a value that breaks the declared output is our bug, named by its path", async () => {
    const { isError } = await result(
      { items: [{ n: "1" }] },
      { output: z.object({ items: z.array(z.object({ n: z.number() })) }) },
    );
    expect(isError).toBe(true);
    expect(logged.at(-1)).toMatchObject({
      level: "error",
      error: { code: "output_mismatch", message: expect.stringContaining("items[0].n: ") },
    });
  });
  it.each([
    ["text", "x".repeat(2_000)],
    ["an object", { list: Array(500).fill("xx") }],
    ["an image", image("x".repeat(2_000), "image/png")],
    ["a hand-built result", { content: [{ type: "text", text: "ü".repeat(1_000) }] }],
  ])("a huge %s is refused with its limit, for the caller and in the log", async (_, value) => {
    const found = await call(returning(value, {}, { maxResultBytes: 1_024 }), "t", {}, { era });
    expect(found.result).toMatchObject({
      isError: true,
      structuredContent: { code: "result_too_large", limitBytes: 1_024 },
    });
    expect(said(found)).toMatch(/^The result of Tool t is too large: .*limit/);
    expect(logged.at(-1)).toMatchObject({ level: "error", code: "result_too_large" });
  });
  it("8 MiB is the limit unless the server says otherwise", async () => {
    expect((await result("x".repeat(3 * 1024 * 1024))).isError).toBeUndefined();
    expect((await result("x".repeat(9 * 1024 * 1024))).isError).toBe(true);
  });
});

describe("what a resource returns", () => {
  const read = async (value: unknown, more: Partial<ServerOptions> = {}) => {
    const server = createServer({ name: "test", version: "1", logSink: (entry) => logged.push(entry), ...more });
    return ask(
      server.resource("a://b", {}, () => value),
      "resources/read",
      { uri: "a://b" },
    );
  };
  it.each([
    ["text", "x", [{ uri: "a://b", mimeType: "text/plain", text: "x" }]],
    ["bytes", bytes, [{ uri: "a://b", mimeType: "application/octet-stream", blob: "AQI=" }]],
    ["JSON", { a: 1 }, [{ uri: "a://b", mimeType: "application/json", text: '{"a":1}' }]],
    ["an image", image(bytes, "image/png"), [{ uri: "a://b", mimeType: "image/png", blob: "AQI=" }]],
    [
      "files",
      content([file("a://1", "one"), "two"]),
      [
        { uri: "a://1", text: "one" },
        { uri: "a://b", mimeType: "text/plain", text: "two" },
      ],
    ],
    ["contents", { contents: [{ uri: "a://1", text: "one" }] }, [{ uri: "a://1", text: "one" }]],
  ])("%s", async (_, value, contents) => expect((await read(value)).result?.contents).toEqual(contents));
  it.each([
    [{ contents: [{ text: "x" }] }, "contents[0].uri: expected a string, got undefined"],
    [{ contents: [{ uri: "a://b" }] }, "contents[0]: expected either text or blob"],
    [{ contents: ["x"] }, "contents[0]: expected { uri, text }"],
    [link("a://c", "c"), "returned a link"],
    [{ n: 1n }, "resource a://b.n is a bigint"],
  ])("%o is masked, and the log says what is wrong", async (value, message) => {
    expect((await read(value)).error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^Resource a:\/\/b failed \(reference/),
    });
    expect(logged.at(-1)).toMatchObject({ error: { message: expect.stringContaining(message) } });
  });
  it("is bounded too", async () => {
    expect((await read("x".repeat(2_000), { maxResultBytes: 1_024 })).error?.message).toMatch(
      /^The result of Resource a:\/\/b is too large/,
    );
  });
});

describe("what a prompt returns", () => {
  const get = async (value: unknown) => {
    const server = createServer({ name: "test", version: "1", logSink: (entry) => logged.push(entry) });
    return ask(
      server.prompt("p", { description: "d" }, () => value),
      "prompts/get",
      { name: "p" },
    );
  };
  const user = (block: object) => ({ role: "user", content: block });
  it.each([
    ["text", "x", [user({ type: "text", text: "x" })]],
    ["several texts", ["x", "y"], [user({ type: "text", text: "x" }), user({ type: "text", text: "y" })]],
    ["a message", { role: "assistant", content: "x" }, [{ role: "assistant", content: { type: "text", text: "x" } }]],
    [
      "content",
      content(["see", image(bytes, "image/png")]),
      [user({ type: "text", text: "see" }), user({ type: "image", data: "AQI=", mimeType: "image/png" })],
    ],
    [
      "messages",
      { messages: [{ role: "user", content: { type: "text", text: "x" } }] },
      [user({ type: "text", text: "x" })],
    ],
    [
      "a message of content",
      { role: "assistant", content: text("x") },
      [{ role: "assistant", content: { type: "text", text: "x" } }],
    ],
  ])("%s", async (_, value, messages) =>
    expect((await get(value)).result).toMatchObject({ description: "d", messages }),
  );
  it.each([
    [
      { messages: [{ role: "system", content: "x" }] },
      'messages[0].role: expected "user" or "assistant", got "system"',
    ],
    [[{ role: "user", content: { type: "image" } }], "messages[0].content.data: expected a string"],
    [[{ role: "user", content: 3 }], "messages[0].content: expected a content block, got 3"],
  ])("%o is masked, and the log says what is wrong", async (value, message) => {
    expect((await get(value)).error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^Prompt p failed \(reference/),
    });
    expect(logged.at(-1)).toMatchObject({ error: { message: expect.stringContaining(message) } });
  });
});

describe("an unexpected error", () => {
  it("tells the caller nothing and the log everything, under one reference (D2)", async () => {
    const server = createServer({ name: "test", version: "1", logSink: (entry) => logged.push(entry) }).tool(
      "leak",
      {},
      () => {
        throw new Error("password=hunter2 at /srv/app/db.ts");
      },
    );
    const reply = await call(server, "leak");
    const reference = /^Tool leak failed \(reference (\w{6})\)$/.exec(said(reply))?.[1];
    expect(JSON.stringify(reply)).not.toMatch(/hunter2|srv/);
    expect(logged.at(-1)).toMatchObject({ reference, error: { message: "password=[redacted] at /srv/app/db.ts" } });
  });
});
