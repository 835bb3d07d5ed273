import type { JsonObject } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { clientOf, shop } from "../../test/shop.ts";
import { type CatalogTool, createClient, type ToolRuntime } from "../index.ts";
import { injectArgs } from "./inject-args.ts";

type Mine = ToolRuntime<{ userId: string }>;
const caller = () => injectArgs<Mine>({ caller_id: ({ runtime }) => runtime.context?.userId });
const entry = (inputSchema: JsonObject): CatalogTool => ({
  name: "mcp_s_t",
  server: "s",
  wireName: "t",
  description: "",
  inputSchema,
  annotations: {},
  meta: {},
});
const shown = (schema: JsonObject) => caller().catalog?.(entry(schema)).inputSchema;

describe("injectArgs", () => {
  const input = z.strictObject({ order_id: z.string(), caller_id: z.string() });
  const runtime = { context: { userId: "ann" } };

  it("hides the field from the model and fills it in, whatever the model wrote there", async () => {
    const server = await shop({ t: { input } });
    await using client = createClient<Mine>({ servers: { s: { url: server.url } }, interceptors: [caller()] });
    const [tool] = await client.listTools();
    expect(tool?.inputSchema).toMatchObject({
      type: "object",
      properties: { order_id: { type: "string" } },
      required: ["order_id"],
      additionalProperties: false,
    });
    expect(JSON.stringify(tool)).not.toContain("caller_id");
    await client.dispatch("mcp_s_t", { order_id: "A" }, { runtime });
    await client.callTool("s", "t", { order_id: "B", caller_id: "root" }, { runtime });
    expect(server.got).toEqual([
      { order_id: "A", caller_id: "ann" },
      { order_id: "B", caller_id: "ann" },
    ]);
  });

  it("lets no forged value through, also where there is none of its own", async () => {
    const server = await shop({ t: { input: z.object({ caller_id: z.string().optional() }) }, plain: {} });
    await using client = createClient<Mine>({ servers: { s: { url: server.url } }, interceptors: [caller()] });
    await client.callTool("s", "t", { caller_id: "root" });
    await client.callTool("s", "plain", { caller_id: "root", other: 1 }, { runtime });
    expect(server.got).toEqual([{}, { other: 1 }]);
    const required = await shop({ t: { input } });
    await using strict = createClient<Mine>({ servers: { s: { url: required.url } }, interceptors: [caller()] });
    // the server's own schema is the truth: it refuses a call without the field
    expect((await strict.callTool("s", "t", { order_id: "A", caller_id: "root" })).isError).toBe(true);
    expect(required.got).toEqual([]);
  });

  it("sends the field to tools that do not declare it only where it is told so", async () => {
    const server = await shop({ plain: {} });
    const inject = injectArgs({ trace: () => Promise.resolve("t1") }, { undeclared: true });
    await clientOf(server.url, { interceptors: [inject] }).callTool("s", "plain", { trace: "forged" });
    expect(server.got).toEqual([{ trace: "t1" }]);
  });

  it("concerns the servers it is for", async () => {
    const server = await shop({ t: { input } });
    const inject = injectArgs({ caller_id: () => "me" }, { servers: ["other"] });
    const client = clientOf(server.url, { interceptors: [inject] });
    expect(JSON.stringify(await client.listTools())).toContain("caller_id");
    await client.callTool("s", "t", { order_id: "A", caller_id: "own" });
    expect(server.got).toEqual([{ order_id: "A", caller_id: "own" }]);
  });

  it("sends nothing when the value cannot be made", async () => {
    const server = await shop({ t: { input } });
    const inject = injectArgs({
      caller_id: () => {
        throw new Error("nobody is logged in");
      },
    });
    const client = clientOf(server.url, { interceptors: [inject] });
    await expect(client.callTool("s", "t", { order_id: "A" })).rejects.toThrow("nobody is logged in");
    expect(server.got).toEqual([]);
  });

  it("finds the field in all places that describe the same object", () => {
    const field = { caller_id: { type: "string" } };
    const schema: JsonObject = {
      type: "object",
      properties: { ...field, a: {} },
      required: ["a", "caller_id"],
      examples: [{ a: 1, caller_id: "x" }],
      dependentRequired: { caller_id: ["a"], a: ["caller_id"] },
      anyOf: [{ properties: field, required: ["caller_id"] }, { $ref: "#/$defs/with~1id" }],
      $defs: { "with/id": { properties: { ...field, b: {} }, required: ["caller_id", "b"] } },
    };
    const before = structuredClone(schema);
    const { $defs, ...root } = shown(schema) ?? {};
    expect(root).toEqual({
      type: "object",
      properties: { a: {} },
      required: ["a"],
      examples: [{ a: 1 }],
      dependentRequired: { a: [] },
      anyOf: [{ properties: {}, required: [] }, { allOf: [{ properties: { b: {} }, required: ["b"] }] }],
    });
    expect(schema).toEqual(before);
  });

  it("leaves nested fields of that name, and schemas without it, as they are", () => {
    const nested = {
      type: "object",
      properties: { order: { properties: { caller_id: {} }, required: ["caller_id"] } },
    };
    expect(shown(nested)).toBe(nested);
    const loop = { type: "object", allOf: [{ $ref: "#" }] };
    expect(shown(loop)).toBe(loop);
  });

  it("needs functions", () => {
    expect(() => injectArgs({ caller_id: "ann" as never })).toThrow('"caller_id" must be a function');
  });
});
