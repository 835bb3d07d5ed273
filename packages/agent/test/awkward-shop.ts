import type { JsonObject } from "@tenon/core";
import { createServer, image, type TenonServer, ToolError } from "@tenon/server";

type ToolInput = NonNullable<Parameters<TenonServer["tool"]>[1]["input"]>;

/** A JSON Schema as it is, for servers whose schemas no library would write. */
export function rawSchema(schema: JsonObject): ToolInput {
  const json = () => ({ ...schema });
  const validate = (value: unknown) => ({ value });
  // a Standard Schema with JSON Schema output, which is all the server asks of a schema
  return {
    "~standard": { version: 1, vendor: "raw", validate, jsonSchema: { input: json, output: json } },
  } as ToolInput;
}

const A1: JsonObject = {
  names: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }], default: null },
  n: { type: ["integer", "null"] },
};

/** What a server may well send, and at least one provider refuses. */
export const AWKWARD: Readonly<Record<string, JsonObject>> = {
  optional: { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: A1 },
  either: {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string" } },
    anyOf: [{ required: ["a"] }, { required: ["b"] }],
  },
  shape: {
    type: "object",
    properties: {
      shape: {
        oneOf: [
          { type: "object", properties: { kind: { const: "circle" }, r: { type: "number" } }, required: ["kind", "r"] },
          {
            type: "object",
            properties: { kind: { const: "square" }, side: { type: "number" } },
            required: ["kind", "side"],
          },
        ],
      },
    },
    required: ["shape"],
  },
  tree: {
    type: "object",
    properties: { root: { $ref: "#/$defs/Node" } },
    $defs: {
      Node: {
        type: "object",
        properties: { v: { type: "integer" }, kids: { type: "array", items: { $ref: "#/$defs/Node" } } },
      },
    },
  },
  "admin.level": {
    type: "object",
    properties: {
      level: { enum: [1, 2, 3] },
      when: { type: "string", format: "date-time", pattern: "(?<y>\\d{4})" },
      bag: { type: "object", additionalProperties: { type: "integer", exclusiveMinimum: 0 } },
      any: true,
      list: { type: "array" },
      pair: { type: "array", items: [{ type: "string" }, { type: "number" }] },
    },
    required: ["level"],
    additionalProperties: false,
  },
  chinese: {
    type: "object",
    properties: { 订单号: { type: "string" }, amount: { type: "number" } },
    required: ["订单号"],
  },
  nothing: { type: "object" },
};

/** A real server with those tools; each answers with its arguments. `broken` fails, `drop` is destructive. */
export function awkwardShop(): TenonServer {
  const server = createServer({ name: "shop", version: "1.0.0", logSink: () => undefined });
  for (const [name, schema] of Object.entries(AWKWARD)) {
    server.tool(name, { description: `Tool ${name}`, input: rawSchema(schema) }, (args) => JSON.stringify(args));
  }
  server.tool("broken", { description: "Fails" }, () => {
    throw new ToolError("the printer is on fire");
  });
  server.tool("drop", { description: "Deletes all", annotations: { destructiveHint: true } }, () => "dropped");
  server.tool("silent", { description: "Says nothing" }, () => "");
  server.tool("picture", { description: "An image" }, () => image(Buffer.from("png"), "image/png"));
  return server;
}
