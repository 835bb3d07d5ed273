import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { readClaims } from "./claims.ts";
import { invalidToken, unavailable } from "./errors.ts";
import { fetchJson } from "./fetch-json.ts";
import { ACCEPT_OPTIONS, type AcceptOptions, checkAddress, readAcceptOptions } from "./options.ts";
import type { TokenVerifier } from "./types.ts";

/** Which tokens a server takes that only their issuer can read. */
export interface IntrospectionOptions extends AcceptOptions {
  /** The issuer's introspection endpoint (RFC 7662): https, or http on this machine. */
  url: string | URL;
  /** This server's own name there. */
  clientId: string;
  /** This server's own secret there. Goes nowhere else. */
  clientSecret: string;
  /** Milliseconds one question may take. Default 5,000. */
  timeoutMs?: number;
}

const OPTIONS = [...ACCEPT_OPTIONS, "url", "clientId", "clientSecret", "timeoutMs"] as const satisfies ReadonlyArray<
  keyof IntrospectionOptions
>;

const MAX_BYTES = 64 * 1024;
const TIMEOUT_MS = 5_000;

/** A part of a Basic header as OAuth wants it (RFC 6749, section 2.3.1). */
const encoded = (part: string): string => new URLSearchParams([["", part]]).toString().slice(1);

/** The issuer that a token names, if it can be read. Not verified: good for not asking somebody else, and for nothing more. */
function issuerNamedIn(token: string): string | undefined {
  const [, payload, signature] = token.split(".");
  if (payload === undefined || signature === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return isRecord(claims) && typeof claims.iss === "string" ? claims.iss : undefined;
  } catch {
    return undefined; // no JWT, or an encrypted one
  }
}

/**
 * Asks the issuer about each token (RFC 7662), at most once in `cacheTtlMs`: for tokens that are no JWTs, and where a revoked
 * token must end soon. A JWT that names another issuer is refused without asking. The answer must say `active` and name this server in `aud`.
 *
 * @throws ConfigError without an audience, an issuer, an address or credentials
 * @example
 * createServer({ …, auth: introspection({
 *   url: "https://login.example/introspect", clientId: "orders", clientSecret: process.env.INTROSPECTION_SECRET ?? "",
 *   issuer: "https://login.example", audience: "https://orders.example/mcp",
 * }) })
 */
export function introspection(options: IntrospectionOptions): TokenVerifier {
  checkOptions(options, OPTIONS, "introspection(options)");
  const rules = readAcceptOptions(options, "introspection(options)");
  const url = checkAddress(options.url, "introspection(options): url", "introspection_url");
  const { clientId, clientSecret, timeoutMs = TIMEOUT_MS } = options;
  for (const [name, value] of Object.entries({ clientId, clientSecret })) {
    if (typeof value === "string" && value !== "") continue;
    throw new ConfigError(
      `introspection(options) needs a ${name}: the endpoint answers only those it knows (RFC 7662, section 2.1)`,
      { code: "introspection_client" },
    );
  }
  if (!(Number.isSafeInteger(timeoutMs) && timeoutMs > 0)) {
    throw new ConfigError(`introspection(options): timeoutMs is ${timeoutMs}; expected whole milliseconds above 0`, {
      code: "timeout",
    });
  }
  const headers = {
    accept: "application/json",
    "content-type": "application/x-www-form-urlencoded",
    authorization: `Basic ${Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString("base64")}`,
  };
  const what = `what ${url.origin}${url.pathname} says about a token`;
  const { issuer, resource, requiredScopes, scopesSupported } = rules;

  async function ask(token: string): Promise<Record<string, unknown>> {
    const body = new URLSearchParams({ token, token_type_hint: "access_token" }).toString();
    const said = await fetchJson(url, { method: "POST", headers, body }, { timeoutMs, maxBytes: MAX_BYTES }, what);
    if (isRecord(said) && typeof said.active === "boolean") return said;
    throw unavailable(`Reading ${what} gave no answer as RFC 7662 has it`);
  }

  return {
    issuers: [issuer],
    resource,
    requiredScopes,
    scopesSupported,
    async verify(token) {
      const named = issuerNamedIn(token);
      // whoever is asked sees the token and could use it here: beside other issuers (anyOf), theirs are none of its business
      if (named !== undefined && named !== issuer) {
        throw invalidToken("issuer", "The token is from another issuer");
      }
      const { active, ...claims } = await ask(token);
      if (active !== true) throw invalidToken("inactive", "The token is not active");
      // the issuer was asked itself, so it need not name itself; a token without an end is asked about again and again
      return readClaims(claims, rules, { required: [] });
    },
  };
}
