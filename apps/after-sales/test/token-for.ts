import { openSigningKey, signToken, type TokenOptions } from "@tenon/server/development";
import { AUDIENCES, ISSUER, SCOPES } from "../src/servers/access.ts";
import type { ServerName } from "../src/servers/names.ts";
import { signingKeyPath } from "../src/servers/trust.ts";

/** A token as the desk on this data directory makes it, or changed. */
export async function tokenFor(
  dataDirectory: string,
  server: ServerName,
  changes: Partial<TokenOptions> = {},
): Promise<string> {
  return signToken({
    key: await openSigningKey(signingKeyPath(dataDirectory)),
    issuer: ISSUER,
    audience: AUDIENCES[server],
    subject: "user_zhangsan",
    scopes: SCOPES[server],
    ...changes,
  });
}
