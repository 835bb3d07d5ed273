import assert from "node:assert/strict";
import { createClient, renderText } from "@tenon/client";
import server from "./entry.ts";

// #region listen
const { url, close } = await server.listen({ port: 0 }); // 127.0.0.1, a free port, path /mcp
// #endregion
await using client = createClient({ servers: { clock: { url } } });
assert.equal(renderText((await client.callTool("clock", "opened")).content), "1970-01-01T00:00:00.000Z");
await client.close();
await close();

// #region fetch
// in any framework with web-standard requests; `caller` comes from a token that you verified
const answer = (request: Request): Promise<Response> =>
  server.fetch(request, { caller: { subject: "zhangsan", scopes: [], claims: {} } });
// #endregion
assert.equal((await answer(new Request("http://127.0.0.1/mcp", { headers: { host: "127.0.0.1" } }))).status, 405);
await server.close();
