import type { DpopSession } from "@modelcontextprotocol/client";
import type { Credential } from "./types.ts";

/** A token as requests carry it: as a bearer, or bound to a key with a fresh proof for each request (RFC 9449). */
export function presenter(principal: string, token: string, dpop?: DpopSession): Credential {
  if (!dpop) {
    const headers = { authorization: `Bearer ${token}` };
    return { principal, token, headers: () => headers };
  }
  return {
    principal,
    token,
    headers: async (method, url) => ({
      authorization: `DPoP ${token}`,
      dpop: await dpop.buildProof({ htm: method, htu: url, accessToken: token }),
    }),
  };
}
