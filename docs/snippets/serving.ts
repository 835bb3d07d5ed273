import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient, renderText } from "@tenon/client";
import { createServer, type ServerRequest } from "@tenon/server";
import { rateLimit } from "@tenon/server/middleware";
import server from "./entry.ts";

// #region listen
const { url, close } = await server.listen({ port: 0 }); // 127.0.0.1, a free port, path /mcp
// #endregion
await using client = createClient({ servers: { clock: { url } } });
assert.equal(renderText((await client.callTool("clock", "opened")).content), "1970-01-01T00:00:00.000Z");
await client.close();
await close();

const file = (name: string): string =>
  fileURLToPath(new URL(`../../packages/server/test/fixtures/tls/${name}.pem`, import.meta.url));
const [certFile, keyFile] = [file("first.cert"), file("first.key")];

// #region tls
const secure = await server.listen({ port: 0, tls: { certFile, keyFile } }); // https://127.0.0.1:…/mcp
// #endregion
await using trusting = createClient({ servers: { clock: { url: secure.url, ca: readFileSync(certFile, "utf8") } } });
assert.equal(renderText((await trusting.callTool("clock", "opened")).content), "1970-01-01T00:00:00.000Z");
await trusting.close();
await secure.close();

const folder = mkdtempSync(join(tmpdir(), "tenon-"));
const unixSocket = join(folder, "clock.sock");

// #region unix
const local = await server.listen({ unixSocket });
const neighbour = createClient({ servers: { clock: { url: "http://localhost/mcp", socketPath: unixSocket } } });
// #endregion
assert.equal(renderText((await neighbour.callTool("clock", "opened")).content), "1970-01-01T00:00:00.000Z");
await neighbour.close();
await local.close();
rmSync(folder, { recursive: true });

// #region proxy
const orders = createServer({
  name: "orders",
  version: "1.0.0",
  http: { allowedHosts: ["tools.example"], trustedProxies: ["loopback"] },
});
const per = ({ caller, remoteAddress }: ServerRequest): string => caller?.subject ?? remoteAddress ?? "";
orders.use(rateLimit({ limit: 60, windowMs: 60_000, per }));
orders.tool("from", {}, (_, ctx) => ctx.remoteAddress);
// #endregion
const behind = await orders.listen({ port: 0 });

/** Calls the tool as the proxy does. */
function through(headers: Record<string, string>): Promise<string> {
  const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return new Promise((resolve, reject) => {
    const sent = request(behind.url, { method: "POST", headers: { ...json, ...headers } }, async (answer) => {
      answer.setEncoding("utf8");
      resolve((await answer.toArray()).join(""));
    });
    sent.on("error", reject);
    sent.end('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"from"}}');
  });
}
// what the two configurations send: the caller's address last, the name it asked for
const sent = {
  "x-forwarded-for": "1.1.1.1, 203.0.113.9",
  "x-forwarded-host": "tools.example",
  "x-forwarded-proto": "https",
};
assert.match(await through({ host: "tools.example", ...sent }), /"203\.0\.113\.9"/);
assert.match(
  await through({ host: "tools.example", ...sent, "x-forwarded-host": "evil.example" }),
  /Invalid Host: evil/,
);
await orders.close();

// #region fetch
// in any framework with web-standard requests; `caller` comes from a token that you verified
const answer = (request: Request): Promise<Response> =>
  server.fetch(request, { caller: { subject: "zhangsan", scopes: [], claims: {} }, remoteAddress: "203.0.113.9" });
// #endregion
assert.equal((await answer(new Request("http://127.0.0.1/mcp", { headers: { host: "127.0.0.1" } }))).status, 405);
await server.close();
