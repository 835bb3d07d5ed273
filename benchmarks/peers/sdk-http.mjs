// SDK v2 as its documentation wires it: a server built for every request, behind toNodeHandler; with a key, behind requireBearerAuth.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  requireBearerAuth,
} from "@modelcontextprotocol/server";
import { importJWK, jwtVerify } from "jose";
import { z } from "zod";
import { flag } from "../lib/flag.mjs";
import { AUDIENCE, ISSUER, readKey, SCOPE } from "../lib/tokens.mjs";
import { announce, INFO, tools } from "../lib/tools.mjs";

const count = Number(flag("tools", 1));
const handler = createMcpHandler(() => {
  const server = new McpServer(INFO);
  for (const tool of tools(z, count)) {
    server.registerTool(tool.name, { description: tool.description, inputSchema: tool.input }, tool.run);
  }
  return server;
});

/** The handler behind the SDK's own gate, which verifies the token of every request. */
async function behindGate(jwk) {
  const key = await importJWK(jwk);
  const gate = requireBearerAuth({
    verifier: {
      async verifyAccessToken(token) {
        try {
          const { payload } = await jwtVerify(token, key, {
            issuer: ISSUER,
            audience: AUDIENCE,
            algorithms: [jwk.alg],
          });
          const { client_id: clientId, scope, exp: expiresAt } = payload;
          return { token, clientId, scopes: scope.split(" "), expiresAt, resource: new URL(AUDIENCE) };
        } catch {
          throw new OAuthError(OAuthErrorCode.InvalidToken, "Invalid token");
        }
      },
    },
    requiredScopes: [SCOPE],
    expectedResource: new URL(AUDIENCE),
  });
  return {
    async fetch(request, options) {
      const authInfo = await gate(request);
      return authInfo instanceof Response ? authInfo : handler.fetch(request, { ...options, authInfo });
    },
  };
}

const key = readKey(flag("key"));
const http = createServer(toNodeHandler(key ? await behindGate(key) : handler));
http.keepAliveTimeout = 60_000;
http.listen(0, "127.0.0.1", () => announce(http.address().port));
