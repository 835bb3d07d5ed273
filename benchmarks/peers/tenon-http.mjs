// Tenon as its documentation shows it.
// biome-ignore lint/correctness/noUndeclaredDependencies: the build of this checkout, found in the folder above
import { createServer } from "@tenon/server";
// biome-ignore lint/correctness/noUndeclaredDependencies: the same
import { jwt } from "@tenon/server/auth";
// biome-ignore lint/correctness/noUndeclaredDependencies: the same
import { rateLimit } from "@tenon/server/middleware";
// biome-ignore lint/correctness/noUndeclaredDependencies: the same
import { openTelemetry } from "@tenon/telemetry";
import { z } from "../../node_modules/zod/index.js"; // the copy its packages use, as in a project of its own
import { serverContract } from "../lib/contract.mjs";
import { flag } from "../lib/flag.mjs";
import { AUDIENCE, ISSUER, readKey, SCOPE } from "../lib/tokens.mjs";
import { announce, INFO, tools } from "../lib/tools.mjs";

const publicKey = readKey(flag("key"));
const auth = publicKey && jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey, requiredScopes: [SCOPE] });

// with everything that a server among fifty has: a signed contract that every call's context is checked by, and metrics
const watched = flag("watched") !== undefined;
if (watched) await openTelemetry({ serviceName: INFO.name });

// the whole list on one page, as the other servers answer it
const server = createServer({
  ...INFO,
  pageSize: 10_000,
  ...(auth && { auth }),
  ...(watched && { contract: serverContract }),
});
if (auth) server.use(rateLimit({ limit: 1e9, windowMs: 1_000 }));
for (const { name, description, input, run } of tools(z, Number(flag("tools", 1)))) {
  server.tool(name, { description, input }, run);
}
const { port } = await server.listen({ port: 0 });
announce(port);
