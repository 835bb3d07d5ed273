import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { authServer } from "../../packages/cli/test/tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-docs-"));
// the system's opener, which a program starts to show a page: here a script that signs in and approves
const opener = fileURLToPath(new URL("../../packages/cli/test/opener.ts", import.meta.url));
for (const name of ["xdg-open", "open"]) {
  writeFileSync(join(folder, name), `#!/bin/sh\nexec "${process.execPath}" --import tsx "${opener}" "$1"\n`);
  chmodSync(join(folder, name), 0o755);
}
process.env.PATH = `${folder}:${process.env.PATH}`;
process.env.DISPLAY ??= ":0";
// free ports, so that the page runs beside others
const free = createTcpServer().listen(0, "127.0.0.1");
await new Promise((resolve) => free.once("listening", resolve));
process.env.PORT = String((free.address() as { port: number }).port);
await new Promise((resolve) => free.close(resolve));
const started = await authServer(
  ["--resource", `http://127.0.0.1:${process.env.PORT}/mcp`, "--scope", "orders:read orders:refund"],
  { cwd: folder },
);
process.env.ISSUER = started.issuer;
process.env.ORDERS = `http://127.0.0.1:${process.env.PORT}/mcp`;

// #region server
import { createServer } from "@tenon/server";
import { jwt } from "@tenon/server/auth";

const issuer = process.env.ISSUER ?? "http://127.0.0.1:4749"; // tenon auth-server
const port = Number(process.env.PORT ?? 8000);
const address = `http://127.0.0.1:${port}/mcp`;

const server = createServer({
  name: "orders",
  version: "1.0.0",
  auth: jwt({ issuer, audience: address, jwksUrl: `${issuer}/jwks`, requiredScopes: ["orders:read"] }),
});
server.tool("whoami", {}, (_, ctx) => `You are ${ctx.caller?.subject}`);
server.tool("refund", { scopes: ["orders:refund"] }, (_, ctx) => `Refunded by ${ctx.caller?.subject}`);
await server.listen({ port });

// #endregion

// #region client
import { createClient, renderText } from "@tenon/client";
import { oauth } from "@tenon/client/auth";

const url = process.env.ORDERS ?? "http://127.0.0.1:8000/mcp";
const client = createClient({ servers: { orders: { url, auth: oauth() } } });
const who = await client.callTool("orders", "whoami", {}); // the browser opens: pick a name, approve
const refund = await client.callTool("orders", "refund", {}); // and again, for one scope more
console.error(renderText(who.content), renderText(refund.content));
await client.close();
// #endregion
assert.deepEqual(
  [who, refund].map(({ content }) => renderText(content)),
  ["You are alice", "Refunded by alice"],
);

const automatic = await authServer(["--resource", address, "--auto-approve", "ci"], { cwd: folder });
const nightly = createServer({
  name: "nightly",
  version: "1.0.0",
  auth: jwt({ issuer: automatic.issuer, audience: address, jwksUrl: `${automatic.issuer}/jwks` }),
});
nightly.tool("whoami", {}, (_, ctx) => `You are ${ctx.caller?.subject}`);
await server.close();
await nightly.listen({ port });

// #region headless
/** Goes where a browser would go, with the cookies it is given; the last redirect leads back to the client. */
async function follow(url: string): Promise<void> {
  const cookies = new Map<string, string>();
  for (let next: string | undefined = url; next !== undefined; ) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response: Response = await fetch(next, { headers: { cookie }, redirect: "manual" });
    if (response.status >= 400) throw new Error(`${new URL(next).host} answers ${response.status}`);
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    const location = response.headers.get("location");
    next = location === null ? undefined : new URL(location, next).href;
  }
}
const headless = createClient({
  servers: { orders: { url, auth: oauth({ onAuthorize: ({ url }) => follow(url) }) } },
});
const ci = await headless.callTool("orders", "whoami", {}); // "You are ci"
await headless.close();
// #endregion
assert.equal(renderText(ci.content), "You are ci");
await nightly.close();
await automatic.stop();

// #region token
import { createSigningKey, publicJwks, signToken } from "@tenon/server/development";

const key = await createSigningKey(); // ES256; or { algorithm: "RS256" }, "EdDSA"
const auth = jwt({ issuer, audience: address, publicKey: publicJwks(key) }); // what the server that checks tokens is given
const token = await signToken({ key, issuer, subject: "alice", audience: address, scopes: ["orders:read"] });
// #endregion
const check = (one: string) => auth.verify(one, () => undefined);
const { caller } = await check(token);
assert.deepEqual([caller.subject, caller.scopes, caller.clientId], ["alice", ["orders:read"], "tenon-development"]);

// #region wrong
const about = { key, issuer, subject: "alice", audience: address };
const expired = await signToken({ ...about, issuedAt: new Date(Date.now() - 7_200_000) });
const early = await signToken({ ...about, notBefore: new Date(Date.now() + 3_600_000) });
const foreign = await signToken({ ...about, audience: "http://127.0.0.1:9999/mcp" });
const forged = await signToken({ ...about, key: await createSigningKey() });
// #endregion
for (const [refused, reason] of [
  [expired, "expired"],
  [early, "not_yet_valid"],
  [foreign, "audience"],
  [forged, "unknown_key"],
] as const) {
  await assert.rejects(check(refused), (error: { data?: { reason?: string } }) => error.data?.reason === reason);
}

// #region file
import { loadSigningKey, saveSigningKey } from "@tenon/server/development";

const files = saveSigningKey(key, join(folder, "signing-key.pem")); // 0600; never overwrites
const same = await loadSigningKey(files.privateKey); // refused when others may read it
// #endregion
assert.equal(same.kid, key.kid);
await started.stop();
rmSync(folder, { recursive: true });
