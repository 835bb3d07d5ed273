import { webcrypto } from "node:crypto";
import { DpopSession, generateDpopKeyPair } from "@modelcontextprotocol/client";
import { isRecord } from "@tenon/core";
import { storeKeys, type TokenStore } from "./store.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;

/** A kept key as a session; undefined when it is none. */
async function revive(kept: unknown): Promise<DpopSession | undefined> {
  if (!isRecord(kept) || !isRecord(kept.privateJwk) || !isRecord(kept.publicJwk)) return undefined;
  const { privateJwk, publicJwk, thumbprint } = kept;
  if (typeof thumbprint !== "string") return undefined;
  try {
    const privateKey = await webcrypto.subtle.importKey("jwk", privateJwk, ALGORITHM, false, ["sign"]);
    const publicKey = await webcrypto.subtle.importKey("jwk", publicJwk, ALGORITHM, true, ["verify"]);
    return await DpopSession.create({ keyPair: { privateKey, publicKey, publicJwk, thumbprint, alg: "ES256" } });
  } catch {
    return undefined; // a damaged key is made anew; its tokens are refused and asked for again
  }
}

/**
 * The key that tokens are bound to (RFC 9449). It is kept beside them in a store that outlives the process, because they are of
 * no use without it, and never leaves the process otherwise.
 */
export async function openDpop(store: TokenStore): Promise<DpopSession> {
  if (!store.durable) return DpopSession.create();
  return store.exclusively(storeKeys.dpop, async () => {
    const known = await revive(await store.get(storeKeys.dpop));
    if (known) return known;
    const keyPair = await generateDpopKeyPair({ extractable: true });
    const privateJwk = await webcrypto.subtle.exportKey("jwk", keyPair.privateKey);
    const { publicJwk, thumbprint } = keyPair;
    await store.set(storeKeys.dpop, { privateJwk, publicJwk, thumbprint });
    return (await revive({ privateJwk, publicJwk, thumbprint })) ?? DpopSession.create({ keyPair });
  });
}
