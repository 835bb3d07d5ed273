import { createHmac, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import type { JsonObject } from "@tenon/core";
import {
  type ContractDeclaration,
  contextFault,
  createKeyRing,
  readContractKeys,
  readDeclaration,
  signedBytes,
} from "@tenon/core/contract";
import { canonicalJson } from "@tenon/core/internal";
import { describe, expect, it } from "vitest";
import { contextVectors, VECTORS_FILE } from "./context-vectors.ts";

const text = readFileSync(VECTORS_FILE, "utf8");
/** As another implementation reads them. */
const vectors = JSON.parse(text) as {
  keys: { name: string; secret?: string; publicKey?: string; text: { client: string } }[];
  canonical: { name: string; json: string; canonical: string }[];
  refused: { name: string; json: string }[];
  declarations: { name: string; key: string; declaration: ContractDeclaration; canonical: string }[];
  verifications: { name: string; keys: string[]; now: string; declaration: unknown; fault: string | null }[];
  schema: JsonObject;
  contexts: { name: string; json: string; fault: { reason: string; field: string } | null }[];
  handshakes: { name: string; secret: string; fields: JsonObject; signature: string }[];
};
function key(wanted: string) {
  const found = vectors.keys.find(({ name }) => name === wanted);
  if (!found) throw new Error(`there is no key ${wanted}`);
  return found;
}

describe("the vectors of the context contract", () => {
  it("are what the code makes of them", () => {
    // `npm run vectors` writes them anew: then whoever implements the extension must be told
    expect(text).toBe(contextVectors());
  });

  it.each(vectors.canonical)("$name: one way to write it", ({ json, canonical }) => {
    expect(canonicalJson(JSON.parse(json))).toBe(canonical);
    // it says the same, and nothing could be left out of it
    expect(JSON.parse(canonical)).toStrictEqual(JSON.parse(json.replaceAll(/-0(\.0)?(?=[,\]])/g, "0")));
    expect(canonicalJson(JSON.parse(canonical))).toBe(canonical);
  });
  it.each(vectors.refused)("$name has no canonical form", ({ json }) => {
    expect(() => canonicalJson(JSON.parse(json))).toThrow("half a surrogate pair");
  });

  it.each(vectors.declarations)(
    "$name: whoever has HMAC or Ed25519 can check it",
    ({ key: name, declaration, canonical }) => {
      const { signature, ...covered } = declaration;
      expect(JSON.parse(canonical)).toEqual(covered);
      const value = Buffer.from(String(signature?.value), "base64url");
      const { secret, publicKey } = key(name);
      if (signature?.alg === "HS256") {
        const mac = createHmac("sha256", Buffer.from(String(secret), "base64url"))
          .update(canonical, "utf8")
          .digest();
        expect(value.equals(mac)).toBe(true);
      } else {
        const jwk = { kty: "OKP", crv: "Ed25519", x: String(publicKey) };
        expect(verify(null, Buffer.from(canonical), createPublicKey({ key: jwk, format: "jwk" }), value)).toBe(true);
      }
      expect(signedBytes(readDeclaration(declaration)).toString()).toBe(canonical);
    },
  );

  it.each(vectors.verifications)("$name", ({ keys, now, declaration, fault }) => {
    const line = keys.map((name) => key(name).text.client).join(",");
    const ring = createKeyRing(readContractKeys(line));
    expect(ring.faultOf(readDeclaration(declaration), Date.parse(now)) ?? null).toBe(fault);
  });
  it("have every fault that there is", () => {
    const faults = new Set(vectors.verifications.map(({ fault }) => fault));
    expect([...faults].sort()).toEqual(
      ["expired", "invalid", "unknown_key", "unsigned", "wrong_algorithm", null].sort(),
    );
  });

  it.each(vectors.handshakes)("$name signs the handshake of older clients", ({ secret, fields, signature }) => {
    const mac = createHmac("sha256", secret).update(canonicalJson(fields), "utf8").digest("hex");
    expect(signature).toBe(`sha256-hmac:${mac}`);
  });
  it.each(vectors.contexts)("the context with $name", ({ json, fault }) => {
    const found = contextFault(vectors.schema, JSON.parse(json));
    expect(found ? { reason: found.reason, field: found.field } : null).toEqual(fault);
  });
});
