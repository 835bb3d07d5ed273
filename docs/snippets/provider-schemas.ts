import assert from "node:assert/strict";

// #region first
import { fromModelArguments, toModelSchema } from "@tenon/agent";

const schema = {
  type: "object",
  properties: { level: { enum: [1, 2, 3] }, note: { type: ["string", "null"] }, place: { $ref: "#/$defs/Place" } },
  anyOf: [{ required: ["level"] }, { required: ["note"] }],
  $defs: { Place: { type: "object", properties: { city: { const: "上海" } } } },
};
const shown = toModelSchema(schema, "gemini"); // what the model reads
const args = fromModelArguments(schema, { level: "2" }, "gemini"); // what it meant: { level: 2 }
// #endregion
assert.deepEqual(args, { level: 2 });
assert.deepEqual(shown, {
  type: "object",
  description: "At least one of these must be given: (level) or (note).",
  properties: {
    level: { type: "string", enum: ["1", "2", "3"] },
    note: { type: "string", nullable: true },
    place: { type: "object", properties: { city: { type: "string", enum: ["上海"] } } },
  },
});

const model = "anthropic";

import { createServer } from "@tenon/server";

const server = createServer({ name: "empty", version: "1.0.0" });
const { url } = await server.listen({ port: 0 });

// #region tools
import { mcpTools } from "@tenon/agent";
import { createClient } from "@tenon/client";

await using client = createClient({ servers: { shop: { url } } });
const tools = await mcpTools(client, { provider: model === "anthropic" ? "anthropic" : "gemini" });
// #endregion
assert.deepEqual(tools, []);
await client.close();
await server.close();
