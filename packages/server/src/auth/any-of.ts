import { AuthError, ConfigError } from "@tenon/core";
import { refusalOf } from "./errors.ts";
import { REASONS, type TokenVerifier } from "./types.ts";

/** How far a verifier came before it refused: who recognised the issuer has more to say than who did not. */
const rank = (error: AuthError): number => (REASONS as readonly unknown[]).indexOf(refusalOf(error).reason); // it may be none

const union = (lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];

/**
 * Takes what any of the given verifiers takes: the first that accepts decides who calls. When none does, the caller is told by
 * the one that recognised most of the token; when one of them could not be asked, nobody knows, and the answer is 503 and not
 * that the token is bad.
 *
 * @example createServer({ …, auth: anyOf(jwt({ … }), introspection({ … })) })
 */
export function anyOf(...verifiers: readonly TokenVerifier[]): TokenVerifier {
  if (verifiers.length === 0 || !verifiers.every((one) => typeof one?.verify === "function")) {
    throw new ConfigError("anyOf(…) needs token verifiers, such as jwt({ … }) and introspection({ … })", {
      code: "auth",
    });
  }
  return {
    issuers: union(verifiers.map((one) => one.issuers)),
    resource: verifiers.find((one) => one.resource !== undefined)?.resource,
    // what each token needs is checked by the verifier that took it: together they need no more than what all need
    requiredScopes: union(verifiers.map((one) => one.requiredScopes)).filter((scope) =>
      verifiers.every((one) => one.requiredScopes.includes(scope)),
    ),
    scopesSupported: union(verifiers.map((one) => one.scopesSupported)),
    async verify(token, log) {
      let refusal: AuthError | undefined;
      let outage: unknown;
      for (const one of verifiers) {
        try {
          return await one.verify(token, log);
        } catch (error) {
          if (!(error instanceof AuthError && error.code === "invalid_token")) outage ??= error;
          else if (refusal === undefined || rank(error) > rank(refusal)) refusal = error;
        }
      }
      throw outage ?? refusal;
    },
  };
}
