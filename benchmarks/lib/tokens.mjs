// A signed token as an authorization server makes it, and what the servers that check it are told.
import { exportJWK, generateKeyPair, SignJWT } from "jose";

export const ISSUER = "https://login.example";
export const AUDIENCE = "https://bench.example/mcp";
export const SCOPE = "mcp";

/** @returns the token, and the argument that gives a server the public key to check it with */
export async function issue() {
  const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), alg: "ES256", kid: "bench" };
  const token = await new SignJWT({ client_id: "bench", scope: SCOPE })
    .setProtectedHeader({ alg: "ES256", kid: "bench", typ: "at+jwt" })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject("bench")
    .setIssuedAt()
    .setExpirationTime("2h")
    .sign(privateKey);
  return { token, argument: `--key=${Buffer.from(JSON.stringify(jwk)).toString("base64url")}` };
}

/** The public key of the command line, as a JWK; undefined without one. */
export const readKey = (given) => given && JSON.parse(Buffer.from(given, "base64url").toString());
