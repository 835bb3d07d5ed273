import { specTypeSchemas } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { compileShape, multi, type Shape } from "./question.ts";

const literals = z.union([z.literal("a"), z.literal("b")]);
const fits: Record<string, [Shape, unknown]> = {
  "an email": [z.email(), "a@b.example"],
  "a date": [z.iso.date(), "2026-01-31"],
  "a uuid": [z.uuid(), "9b2f0f1e-58d0-4c0e-9d0e-1d2f3a4b5c6d"],
  "a text with a beginning": [z.string().startsWith("ORD-"), "ORD-1"],
  "a base64 text": [z.base64(), "YQ=="],
  "a literal": [z.literal("a"), "a"],
  "an integer": [z.number().int().min(1), 2],
  "a list of enum values": [z.array(z.enum(["a", "b"])).min(1), ["a"]],
  "a list of literals": [z.array(literals), ["b"]],
  "several choices": [multi(["a", "b"]), ["a", "b"]],
  "several titled choices": [multi({ a: "A", b: "B" }), ["a"]],
};
const refused: Record<string, [unknown, string]> = {
  "a list of any text": [z.array(z.string()), 'the field "value" is a array'],
  "a list of any text in an object": [z.object({ tags: z.array(z.string()) }), 'the field "tags" is a array'],
  "a record of any names": [z.record(z.string(), z.string()), "a record of any names"],
  "a text": ["yes", '"yes" is no shape'],
  nothing: [undefined, "is no shape"],
};

describe("a shape", () => {
  it.each(Object.entries(fits))(
    "%s goes out as every client can read it, and is read back",
    async (_, [shape, answer]) => {
      const { schema, read } = compileShape(shape);
      const params = { message: "m", mode: "form", requestedSchema: schema };
      const checked = await specTypeSchemas.ElicitRequestFormParams["~standard"].validate(params);
      expect(checked.issues).toBeUndefined();
      expect(await read({ value: answer })).toEqual({ data: answer });
      expect(await read({ value: { odd: true } })).toHaveProperty("problem");
    },
  );
  it.each(Object.entries(refused))("%s is refused, since no form can ask for it", (_, [shape, message]) => {
    expect(() => compileShape(shape as Shape)).toThrow(message); // what an untyped program could give
  });
});
