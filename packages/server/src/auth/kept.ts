import { hash } from "node:crypto";
import { keepNewest } from "@tenon/core";
import type { ServerLog } from "../log.ts";
import type { TokenVerifier, VerifiedToken } from "./types.ts";

/** Tokens remembered at once; beyond it the oldest go first. */
const MAX_KEPT = 10_000;
/** Tokens looked at at once: what waits for an issuer must not pile up without end. */
const MAX_LOOKING = 256;

/** Looks tokens up that were verified a moment ago, and verifies the others. */
export interface KeptTokens {
  /**
   * At once when the token is known, else by a promise. Whoever comes with the same token meanwhile waits for the same answer.
   * A refusal is not kept.
   * @throws (by the promise) what the verifier throws; `"busy"` when too many tokens are looked at already
   */
  look(token: string): VerifiedToken | Promise<VerifiedToken | "busy">;
}

/** @param finish what is done once with a verified token before it is kept */
export function createKeptTokens(
  verifier: Pick<TokenVerifier, "verify">,
  log: ServerLog,
  finish: (verified: VerifiedToken) => VerifiedToken,
): KeptTokens {
  // by SHA-256: what is kept opens nothing
  const kept = new Map<string, VerifiedToken>();
  const looking = new Map<string, Promise<VerifiedToken>>();

  async function verify(key: string, token: string): Promise<VerifiedToken> {
    try {
      const verified = finish(await verifier.verify(token, log));
      if (verified.freshUntil > Date.now()) keepNewest(kept, key, verified, MAX_KEPT);
      return verified;
    } finally {
      looking.delete(key);
    }
  }

  return {
    look(token) {
      const key = hash("sha256", token, "base64");
      const found = kept.get(key);
      if (found) {
        if (found.freshUntil > Date.now()) return found;
        kept.delete(key);
      }
      let work = looking.get(key);
      if (!work) {
        if (looking.size >= MAX_LOOKING) return Promise.resolve("busy");
        work = verify(key, token);
        looking.set(key, work);
      }
      return work;
    },
  };
}
