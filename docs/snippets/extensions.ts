// #region first
import { createServer, extensionMethod, ToolError } from "@tenon/server";
import { z } from "zod";

const entries = [{ id: 1, text: "ORD-001 refunded" }];
const server = createServer({ name: "orders", version: "1.0.0" });
server.extension({
  id: "com.example/audit",
  settings: { retentionDays: 30 },
  methods: {
    "audit/get": extensionMethod({
      params: z.object({ id: z.int() }),
      handler({ id }, exchange) {
        const entry = entries.find((one) => one.id === id);
        if (!entry) throw new ToolError(`There is no entry ${id}`);
        return { entry, reader: exchange.caller?.subject ?? "anonymous" };
      },
    }),
  },
});
// #endregion

// #region gate
server.extension({
  id: "com.example/replay",
  eras: ["modern"],
  requires: "declared",
  methods: { "replay/start": { handler: (_, exchange) => ({ speed: exchange.declared?.speed ?? 1 }) } },
});
// #endregion

const folder = new URL("../../examples/skill/skills", import.meta.url);

// #region skills
import { skills } from "@tenon/server/skills";

(await skills(folder)).addTo(server);

// #endregion

// #region apps
import { app } from "@tenon/server/apps";

app(server, { uri: "ui://orders/view.html", html: "<!doctype html><title>Orders</title>" }).tool(
  "show_orders",
  { description: "Shows the orders." },
  () => ({ orders: 3 }),
);

// #endregion

import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

await using client = await connect(server);
assert.deepEqual(Object.keys(client.server.capabilities.extensions ?? {}), [
  "com.example/audit",
  "com.example/replay",
  "io.modelcontextprotocol/skills",
  "io.modelcontextprotocol/ui",
]);
const { entry, reader } = await client.request("audit/get", { id: 1 });
assert.deepEqual([entry, reader], [entries[0], "anonymous"]);
await assert.rejects(client.request("audit/get", { id: 2 }), /There is no entry 2/);
await assert.rejects(client.request("replay/start"), (error) => {
  assert.deepEqual((error as { data?: { code?: number } }).data?.code, -32021); // connect throws Tenon's errors
  return true;
});
await using declared = await connect(server, { capabilities: { extensions: { "com.example/replay": { speed: 2 } } } });
assert.equal((await declared.request("replay/start")).speed, 2);
assert.equal((await client.readResource("skill://refund-check/SKILL.md")).length, 1);
assert.equal((await client.callTool("show_orders")).text, '{"orders":3}');
