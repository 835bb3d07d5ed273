import { createPrivateKey } from "node:crypto";
import {
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  type OAuthClientProvider,
  PrivateKeyJwtProvider,
  requestJwtAuthorizationGrant,
} from "@modelcontextprotocol/client";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { asAuthError, authError, reasonOf } from "./errors.ts";
import { keepTokens, type Order } from "./keeper.ts";
import { COMMON, type CommonOptions, checkCommon, checkText, sourceOf } from "./options.ts";
import { requestTokens } from "./tokens.ts";
import type { Auth } from "./types.ts";

/** A client with a secret that both sides know. */
export interface SecretClient extends CommonOptions {
  /** This client at the authorization server. */
  clientId: string;
  /** Sent in a header or in the body, as the authorization server takes it. */
  clientSecret: string;
}

/** A client with a key of its own; nothing secret is sent (RFC 7523 section 2.2). */
export interface KeyClient extends CommonOptions {
  /** This client at the authorization server. */
  clientId: string;
  /** As PEM, not encrypted, or a JWK. */
  privateKey: string | Record<string, unknown>;
  /** For example `ES256`; an asymmetric one. */
  algorithm: string;
}

/** Who the program is at the authorization server, with a secret or with a key. */
export type ClientCredentialsOptions = SecretClient | KeyClient;

const ALGORITHM = /^(?:ES|RS|PS)(?:256|384|512)$|^EdDSA$/;

/** What a function of the program gives, or why it does not. @throws AuthError `token_unavailable` */
async function ask(server: string, what: string, get: () => unknown): Promise<string> {
  let value: unknown;
  try {
    value = await get();
  } catch (error) {
    throw authError(server, "token_unavailable", `${what} failed: ${reasonOf(error)}`, { cause: error });
  }
  if (typeof value === "string" && value !== "") return value;
  throw authError(
    server,
    "token_unavailable",
    `${what} must return a text, got ${value === "" ? "an empty one" : typeof value}`,
  );
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

function invalid(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

/** A private key as a JWK: the SDK reads a PEM only for some algorithms. Its text is in no error. @throws ConfigError */
function readPrivateKey(given: unknown, where: string): Record<string, unknown> {
  if (isRecord(given)) return given;
  checkText(given, where);
  try {
    return { ...createPrivateKey(String(given)).export({ format: "jwk" }) };
  } catch {
    return invalid(
      `${where} must be an unencrypted private key as PEM, or a JWK; a path is not read, give what is in the file`,
    );
  }
}

/**
 * Asks for tokens in the program's own name (client credentials, SEP-1046): with a secret, or with a key that signs.
 *
 * @throws ConfigError `invalid_option`, `unknown_option`; calls then reject with AuthError
 * @example auth: clientCredentials({ clientId: "nightly", clientSecret: secret, issuer: "https://id.example" })
 */
export function clientCredentials(options: ClientCredentialsOptions): Auth {
  const where = "clientCredentials(options)";
  if (!isObject(options)) invalid(`${where} must be an object`);
  checkOptions(options, ["clientId", "clientSecret", "privateKey", "algorithm", ...COMMON], where);
  checkCommon(options, where);
  checkText(options.clientId, `${where}.clientId`);
  const { clientId } = options;
  if ("clientSecret" in options && "privateKey" in options)
    invalid(`${where} has clientSecret and privateKey; give one`);
  let make: (order: Order) => OAuthClientProvider;
  let secret: string | undefined;
  if ("privateKey" in options) {
    const { algorithm } = options;
    const privateKey = readPrivateKey(options.privateKey, `${where}.privateKey`);
    if (!ALGORITHM.test(algorithm)) invalid(`${where}.algorithm must be asymmetric, such as ES256, RS256 or PS256`);
    make = ({ issuer }) => new PrivateKeyJwtProvider({ clientId, privateKey, algorithm, expectedIssuer: issuer });
  } else {
    const { clientSecret } = options;
    checkText(clientSecret, `${where}.clientSecret`);
    secret = clientSecret;
    make = ({ issuer }) => new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer });
  }
  return keepTokens({
    ...sourceOf("clientCredentials", options),
    owner: clientId,
    bound: clientId,
    interactive: false,
    obtain: (order) => requestTokens(order, make(order), [secret]),
  });
}

/** What an assertion is made for. */
export interface AssertionRequest {
  /** Configured name of the server. */
  readonly server: string;
  /** The authorization server: the audience. */
  readonly issuer: string;
  /** The server's address: what the token will be for. */
  readonly resource: string;
  /** Scopes the token will be asked for. */
  readonly scopes: readonly string[];
}

/** Options of `workloadIdentity`. */
export interface WorkloadIdentityOptions extends CommonOptions {
  /** The workload's own token, a JWT of its platform for this audience; asked for whenever an access token is needed. */
  token: (request: AssertionRequest) => string | Promise<string>;
  /** Where the authorization server wants one. */
  clientId?: string;
}

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/**
 * Exchanges the token that a platform gives its workloads for one of the server's (RFC 7523, SEP-1933): no secret is configured.
 * A refused token is not tried again.
 *
 * @throws ConfigError `invalid_option`, `unknown_option`; calls then reject with AuthError
 * @example auth: workloadIdentity({ token: () => readFile("/var/run/secrets/tokens/mcp", "utf8") })
 */
export function workloadIdentity(options: WorkloadIdentityOptions): Auth {
  const where = "workloadIdentity(options)";
  if (!isObject(options)) invalid(`${where} must be an object`);
  checkOptions(options, ["token", "clientId", ...COMMON], where);
  checkCommon(options, where);
  const { token, clientId } = options;
  if (typeof token !== "function") invalid(`${where}.token must be a function that returns a JWT`);
  if (clientId !== undefined) checkText(clientId, `${where}.clientId`);
  return keepTokens({
    ...sourceOf("workloadIdentity", options),
    owner: clientId ?? "",
    bound: clientId ?? "workload",
    interactive: false,
    obtain: async (order) => {
      const { server, issuer, resource, scope } = order;
      const scopes = scope?.split(" ") ?? [];
      const given = await ask(server, "the token function of workloadIdentity()", () =>
        token({ server, issuer, resource, scopes }),
      );
      const assertion = given.trim();
      return requestTokens(order, assertionProvider(issuer, clientId, assertion), [assertion]);
    },
  });
}

/** A provider of the SDK for a grant whose assertion is there already. */
function assertionProvider(issuer: string, clientId: string | undefined, assertion: string): OAuthClientProvider {
  return {
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [], grant_types: [JWT_BEARER], token_endpoint_auth_method: "none" },
    clientInformation: () => (clientId === undefined ? undefined : { client_id: clientId, issuer }),
    tokens: () => undefined,
    saveTokens: () => {},
    redirectToAuthorization: () => {},
    saveCodeVerifier: () => {},
    codeVerifier: () => "",
    prepareTokenRequest: (scope) => {
      return new URLSearchParams({ grant_type: JWT_BEARER, assertion, ...(scope !== undefined && { scope }) });
    },
  };
}

/** A company's identity provider. */
export interface IdentityProvider {
  /** Its issuer; the token endpoint is found there. */
  issuer?: string;
  /** Its token endpoint, where that is known. */
  tokenEndpoint?: string;
  /** This client at the identity provider. */
  clientId: string;
  /** Its secret there. Left out for a public client. */
  clientSecret?: string;
}

/** Options of `enterpriseManaged`. */
export interface EnterpriseManagedOptions extends CommonOptions {
  /** This client at the server's authorization server. */
  clientId: string;
  /** This client's secret there. */
  clientSecret: string;
  /** The ID token of the person who signed in at the company's identity provider. */
  idToken: () => string | Promise<string>;
  /** The company's identity provider, and who this client is there. */
  idp: IdentityProvider;
}

/**
 * Has a company's identity provider decide which servers its people reach (enterprise-managed authorization, SEP-990): the
 * person's ID token is exchanged there for a grant (ID-JAG), and the grant for a token of the server. Nobody is asked.
 *
 * @throws ConfigError `invalid_option`, `unknown_option`; calls then reject with AuthError
 */
export function enterpriseManaged(options: EnterpriseManagedOptions): Auth {
  const where = "enterpriseManaged(options)";
  checkOptions(options, ["clientId", "clientSecret", "idToken", "idp", ...COMMON], where);
  if (!isObject(options.idp)) invalid(`${where} must be an object with idp`);
  checkOptions(options.idp, ["issuer", "tokenEndpoint", "clientId", "clientSecret"], `${where}.idp`);
  checkCommon(options, where);
  const { clientId, clientSecret, idToken, idp } = options;
  for (const [name, value] of Object.entries({ clientId, clientSecret, "idp.clientId": idp.clientId })) {
    checkText(value, `${where}.${name}`);
  }
  if (typeof idToken !== "function") invalid(`${where}.idToken must be a function that returns an ID token`);
  const place = idp.tokenEndpoint ?? idp.issuer;
  if (place === undefined || !URL.canParse(place)) invalid(`${where}.idp needs an issuer or a tokenEndpoint`);

  const grantFor = async ({ server, issuer, resource, scope, guard }: Order): Promise<string> => {
    const subject = await ask(server, "the idToken function of enterpriseManaged()", idToken);
    const request = {
      audience: issuer,
      resource,
      idToken: subject,
      clientId: idp.clientId,
      fetchFn: guard.fetch,
      ...(idp.clientSecret !== undefined && { clientSecret: idp.clientSecret }),
      ...(scope !== undefined && { scope }),
    };
    try {
      const { tokenEndpoint } = idp;
      const { jwtAuthGrant } =
        tokenEndpoint === undefined
          ? await discoverAndRequestJwtAuthGrant({ ...request, idpUrl: place })
          : await requestJwtAuthorizationGrant({ ...request, tokenEndpoint });
      return jwtAuthGrant;
    } catch (error) {
      const doing = `asking the identity provider ${new URL(place).origin} for a grant`;
      throw asAuthError(server, error, { code: "token_request_failed", doing }, [subject, idp.clientSecret]);
    }
  };

  const source = sourceOf("enterpriseManaged", options);
  return keepTokens({
    ...source,
    configured: [...source.configured, idp.issuer, idp.tokenEndpoint],
    owner: clientId,
    bound: clientId,
    interactive: false,
    obtain: async (order) => {
      const grant = await grantFor(order);
      const { issuer, resource } = order;
      const provider = new CrossAppAccessProvider({
        assertion: () => grant,
        clientId,
        clientSecret,
        expectedIssuer: issuer,
        fetchFn: order.guard.fetch,
      });
      provider.saveAuthorizationServerUrl(issuer);
      provider.saveResourceUrl?.(resource);
      return requestTokens(order, provider, [grant, clientSecret]);
    },
  });
}
