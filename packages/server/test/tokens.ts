import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import type { JwtOptions } from "../src/auth/index.ts";

export const ISSUER = "https://login.example";
export const AUDIENCE = "https://orders.example/mcp";
export const METADATA = "https://orders.example/.well-known/oauth-protected-resource/mcp";

/** Who signs, and how. */
export interface Signer {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly pem: string;
  readonly jwk: Record<string, unknown>;
}

/** A pair of keys, as an authorization server has one. */
export async function createSigner(kid: string, alg = "ES256"): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: "sig" };
  return { kid, alg, privateKey, publicKey, pem: await exportSPKI(publicKey), jwk };
}

export interface Signing {
  /** Claims over the usual ones; undefined takes one away. */
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  /** Seconds from now. */
  expiresIn?: number;
}

const seconds = (): number => Math.floor(Date.now() / 1000);

/** A token as the issuer makes it, for somebody. */
export function sign(
  by: Signer,
  subject: string,
  scope = "",
  { claims = {}, header = {}, expiresIn = 600 }: Signing = {},
) {
  const usual: JWTPayload = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: subject,
    client_id: "desk",
    iat: seconds(),
    exp: seconds() + expiresIn,
    ...(scope !== "" && { scope }),
  };
  const payload = Object.fromEntries(
    Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined),
  );
  return new SignJWT(payload)
    .setProtectedHeader({ alg: by.alg, kid: by.kid, typ: "at+jwt", ...header })
    .sign(by.privateKey);
}

/** A token put together by hand: whatever an attacker may write. */
export function forge(header: object, payload: object, signature: string | Buffer = ""): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part(header)}.${part(payload)}.${Buffer.from(signature).toString("base64url")}`;
}

export const accepts = (signer: Signer, more: Partial<JwtOptions> = {}): JwtOptions => ({
  issuer: ISSUER,
  audience: AUDIENCE,
  publicKey: signer.jwk,
  ...more,
});

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** An authorization server's HTTP side, as far as a test needs it: counts what it is asked. */
export interface Issuer {
  readonly url: string;
  readonly asked: { url: string; headers: IncomingMessage["headers"]; body: string }[];
  /** What it answers from now on. */
  answer: (path: string, body: string) => { status?: number; body: string | Buffer; delayMs?: number };
  close(): Promise<void>;
}

export async function openIssuer(answer: Issuer["answer"]): Promise<Issuer> {
  const asked: Issuer["asked"] = [];
  const http = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    asked.push({ url: request.url ?? "", headers: request.headers, body });
    const { status = 200, body: said, delayMs = 0 } = issuer.answer(request.url ?? "", body);
    setTimeout(() => {
      response.writeHead(status, { "content-type": "application/json" }).end(said);
    }, delayMs);
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const issuer: Issuer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    asked,
    answer,
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
  return issuer;
}
