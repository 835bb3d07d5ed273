import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

// an authorization server, as far as this page needs one: its keys, and what it says about a token
const { privateKey, publicKey } = await generateKeyPair("ES256");
const http = createHttpServer((request, response) => {
  const opaque = { active: true, sub: "lisi", aud: "https://orders.example/mcp", scope: "orders:read" };
  void exportJWK(publicKey).then((key) =>
    response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify(request.url === "/jwks" ? { keys: [{ ...key, kid: "1", alg: "ES256" }] } : opaque)),
  );
}).listen(0, "127.0.0.1");
await once(http, "listening");
const login = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
const secret = "secret";
const orders = {
  get: async (id: string) => ({ id, amount: 129 }),
  refund: async (id: string, clerk?: string) => `${id} refunded by ${clerk}`,
};

// #region first
import { createServer } from "@tenon/server";
import { jwt } from "@tenon/server/auth";
import { z } from "zod";

const server = createServer({
  name: "orders",
  version: "1.0.0",
  auth: jwt({
    issuer: "https://login.example",
    audience: "https://orders.example/mcp", // this server's public address: what its tokens are issued for
    jwksUrl: `${login}/jwks`,
    requiredScopes: ["orders:read"],
  }),
});
const Order = z.object({ id: z.string() });
server.tool("order", { input: Order }, ({ id }) => orders.get(id));
server.tool("refund", { input: Order, scopes: ["orders:refund"] }, ({ id }, ctx) =>
  orders.refund(id, ctx.caller?.subject),
);
const { url } = await server.listen({ port: 0 });
// #endregion

const sign = (subject: string, scope: string): Promise<string> =>
  new SignJWT({ scope, client_id: "desk" })
    .setProtectedHeader({ alg: "ES256", kid: "1" })
    .setIssuer("https://login.example")
    .setAudience("https://orders.example/mcp")
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime("10m")
    .sign(privateKey);
async function call(to: string, name: string, token?: string): Promise<Response> {
  return fetch(to, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: { id: "A1" } } }),
  });
}
const clerk = await sign("zhangsan", "orders:read orders:refund");
assert.match(await (await call(url, "refund", clerk)).text(), /A1 refunded by zhangsan/);
assert.equal((await call(url, "order")).status, 401);
const lacking = await call(url, "refund", await sign("zhangsan", "orders:read"));
assert.equal(lacking.status, 403);
assert.match(lacking.headers.get("www-authenticate") ?? "", /scope="orders:refund orders:read"/);
const document = await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url));
assert.deepEqual(((await document.json()) as { authorization_servers: string[] }).authorization_servers, [
  "https://login.example",
]);

// #region several
import { anyOf, introspection } from "@tenon/server/auth";

const auth = anyOf(
  jwt({ issuer: "https://login.example", audience: "https://orders.example/mcp", jwksUrl: `${login}/jwks` }),
  introspection({
    url: `${login}/introspect`,
    clientId: "orders",
    clientSecret: secret,
    issuer: "https://partner.example",
    audience: "https://orders.example/mcp",
    cacheTtlMs: 10_000, // a revoked token ends within ten seconds
  }),
);
const scopeHierarchy = { "orders:refund": ["orders:read"], "support:lead": ["orders:refund"] };
const open = createServer({ name: "orders", version: "1.0.0", auth, scopeHierarchy });

// #endregion

// #region authorize
import { hasScope } from "@tenon/server/auth";
import { authorize } from "@tenon/server/middleware";

open.use(authorize(({ name, caller }) => name !== "report" || hasScope(caller, "orders:refund") || "Ask your lead"));

// #endregion

// #region token
import { unsafeToken } from "@tenon/server/auth";

open.tool("ship", {}, async (_, ctx) => {
  // RFC 8693: the authorization server makes of the caller's token one for the stock service
  const exchange = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    subject_token: unsafeToken(ctx) ?? "",
    subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
    resource: "https://stock.example",
  });
  return `${[...exchange.keys()].length} fields`;
});
// #endregion

open.tool("report", {}, () => "all is well");
open.tool("order", { scopes: ["orders:read"] }, (_, ctx) => `for ${ctx.caller?.subject}`);
const at = await open.listen({ port: 0 });
assert.match(await (await call(at.url, "order", "opaque")).text(), /for lisi/);
assert.match(await (await call(at.url, "order", await sign("wangwu", "support:lead"))).text(), /for wangwu/);
assert.match(await (await call(at.url, "report", await sign("wangwu", "support:lead"))).text(), /all is well/);
assert.match(await (await call(at.url, "report", "opaque")).text(), /Ask your lead/);
assert.match(await (await call(at.url, "ship", clerk)).text(), /4 fields/);
await Promise.all([server.close(), open.close()]);
http.close();
http.closeAllConnections();
