import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "tenon-docs-"));

// #region first
import { createSigningKey, publicJwks, signToken } from "@tenon/server/development";

const key = await createSigningKey(); // ES256; or { algorithm: "RS256" }, "EdDSA"
const jwks = publicJwks(key); // what the server that checks tokens is given
const token = await signToken({
  key,
  issuer: "http://127.0.0.1:4749",
  subject: "alice",
  audience: "http://127.0.0.1:8000/mcp",
  scopes: ["orders:read"],
});

// #endregion

import { createLocalJWKSet, jwtVerify } from "jose";

const check = (one: string) =>
  jwtVerify(one, createLocalJWKSet(jwks), { issuer: "http://127.0.0.1:4749", audience: "http://127.0.0.1:8000/mcp" });
const { payload } = await check(token);
assert.deepEqual([payload.sub, payload.scope, payload.client_id], ["alice", "orders:read", "tenon-development"]);

// #region wrong
const about = { key, subject: "alice", audience: "http://127.0.0.1:8000/mcp" };
const expired = await signToken({ ...about, issuedAt: new Date(Date.now() - 7_200_000) });
const early = await signToken({ ...about, notBefore: new Date(Date.now() + 3_600_000) });
const foreign = await signToken({ ...about, audience: "http://127.0.0.1:9999/mcp" });
const forged = await signToken({ ...about, key: await createSigningKey() });
// #endregion
for (const refused of [expired, early, foreign, forged]) await assert.rejects(check(refused));

// #region file
import { loadSigningKey, openSigningKey, saveSigningKey } from "@tenon/server/development";

const files = saveSigningKey(key, join(folder, "signing-key.pem")); // 0600; never overwrites
const same = await loadSigningKey(files.privateKey); // refused when others may read it
const made = await openSigningKey(join(folder, "data", "signing-key.pem")); // made at the first use, once among processes
// #endregion
assert.equal(same.kid, key.kid);
assert.equal((await openSigningKey(join(folder, "data", "signing-key.pem"))).kid, made.kid);
rmSync(folder, { recursive: true });
