// #region first
import { createServer } from "@tenon/server";

const server = createServer({ name: "company", version: "1.0.0" });
server.resource(
  "company://policies/return",
  { mimeType: "text/markdown", description: "What may be returned, and until when." },
  () => "# Returns\n\nWithin 30 days.",
);
server.resource("order://{userId}/{orderId}/detail", {}, ({ userId, orderId }) => ({ userId, orderId, amount: 299 }));
// #endregion

// #region missing
const logos: Record<string, Uint8Array> = { tenon: new Uint8Array([137, 80, 78, 71]) };
server.resource("logo://{name}", { mimeType: "image/png" }, ({ name = "" }) => logos[name]);

// #endregion

import assert from "node:assert/strict";
import { connect } from "@tenon/server/testing";

await using client = await connect(server);
assert.deepEqual(await client.readResource("company://policies/return"), [
  { uri: "company://policies/return", mimeType: "text/markdown", text: "# Returns\n\nWithin 30 days." },
]);
const [detail] = await client.readResource("order://u1/ORD-001/detail");
assert.deepEqual(detail, {
  uri: "order://u1/ORD-001/detail",
  mimeType: "application/json",
  text: '{"userId":"u1","orderId":"ORD-001","amount":299}',
});
assert.deepEqual(await client.readResource("logo://tenon"), [
  { uri: "logo://tenon", mimeType: "image/png", blob: "iVBORw==" },
]);
await assert.rejects(client.readResource("logo://other"), { code: "rpc_error" });
