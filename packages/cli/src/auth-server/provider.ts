import { randomBytes } from "node:crypto";
import type { Client, Configuration, KoaContextWithOIDC, Provider } from "oidc-provider";
import { loopbackDocuments } from "./documents.ts";
import { Memory } from "./memory.ts";
import { errorPage, pagePolicy } from "./pages.ts";
import { type AuthServerSettings, resourceOf, STANDARD_SCOPES } from "./settings.ts";

const MINUTE = 60;
const DAY = 86_400;

type Library = typeof import("oidc-provider");

/** `oidc-provider` reads addresses with `URL.parse`, which not every Node 20 has. */
function provideUrlParse(): void {
  if ("parse" in URL) return;
  const parse = (input: string, base?: string): URL | null => (URL.canParse(input, base) ? new URL(input, base) : null);
  Object.defineProperty(URL, "parse", { value: parse, configurable: true, writable: true });
}

/**
 * Loads `oidc-provider`. On Node 20 it prints that it wants a later Node as it loads; all of what is used here is tested on
 * Node 20, so nobody needs to read that at each start.
 */
async function loadLibrary(): Promise<Library> {
  provideUrlParse();
  const { warn } = console;
  console.warn = (...args: unknown[]) => {
    if (!String(args[0]).includes("Unsupported runtime")) warn(...args);
  };
  try {
    return await import("oidc-provider");
  } finally {
    console.warn = warn;
  }
}

/** Where tokens may be asked for: at the start of an authorization, or directly. */
const asksForScopes = (ctx: KoaContextWithOIDC): boolean =>
  ctx.oidc.route === "authorization" ||
  (ctx.oidc.route === "token" && ctx.oidc.params?.grant_type === "client_credentials");

function resourceIndicators({ errors }: Library, settings: AuthServerSettings) {
  const { resources, scopes, key, tokenSeconds } = settings;
  const known = `this server issues tokens for ${resources.join(", ")}`;
  return {
    enabled: true,
    useGrantedResource: () => true,
    defaultResource: (_ctx: unknown, _client: unknown, oneOf?: readonly string[]) => {
      if (oneOf) return oneOf;
      const [only] = resources;
      // a token without an audience is one for everybody
      if (resources.length === 1 && only !== undefined) return only;
      throw new errors.InvalidTarget(`resource is missing; ${known}`);
    },
    getResourceServerInfo: (ctx: KoaContextWithOIDC, asked: string, client: Client) => {
      const audience = resourceOf(asked, resources);
      if (audience === undefined) throw new errors.InvalidTarget(`unknown resource; ${known}`);
      const { params } = ctx.oidc;
      if (params && asksForScopes(ctx)) {
        const allowed = client.scope?.split(" ");
        // who names no scope gets all that there are (RFC 6749, 3.3); a person may take some away
        params.scope ??= scopes.filter((scope) => allowed?.includes(scope) ?? true).join(" ");
        const asking = String(params.scope).split(" ");
        const unknown = asking.find((scope) => !scopes.includes(scope) && !STANDARD_SCOPES.includes(scope));
        if (unknown !== undefined) {
          throw new errors.InvalidScope(`unknown scope; this server offers ${scopes.join(" ")}`, unknown);
        }
      }
      return {
        scope: scopes.join(" "),
        audience,
        accessTokenFormat: "jwt" as const,
        accessTokenTTL: tokenSeconds,
        jwt: { sign: { alg: key.algorithm } },
      };
    },
  };
}

/** The policy of interactions: a person is asked each time, since a remembered yes would also be one to what has changed since. */
function policy({ interactionPolicy }: Library) {
  const { base, Check } = interactionPolicy;
  const prompts = base();
  prompts.get("consent")?.checks.add(
    new Check("always", "every authorization is approved by a person", (ctx) =>
      // the result of this very interaction
      ctx.oidc.result?.consent ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
    ),
  );
  return prompts;
}

function configuration(library: Library, settings: AuthServerSettings): Configuration {
  const { key, users, scopes, log, tokenSeconds } = settings;
  const memory = new Memory();
  const documents = settings.loopbackDocuments ? loopbackDocuments(log) : async () => undefined;
  return {
    adapter: (kind) => {
      const adapter = memory.adapter(kind);
      if (kind !== "Client") return adapter;
      return { ...adapter, find: async (id) => (await adapter.find(id)) ?? (await documents(id)) };
    },
    clients: [...settings.clients],
    clientDefaults: {
      // most MCP clients are programs on a computer, and not all say so; these may use any port of it (RFC 8252, 7.3)
      application_type: "native",
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
      id_token_signed_response_alg: key.algorithm,
    },
    jwks: { keys: [{ ...key.privateKey.export({ format: "jwk" }), kid: key.kid, alg: key.algorithm, use: "sig" }] },
    cookies: {
      keys: [randomBytes(32).toString("base64url")],
      names: { session: "tenon_session", interaction: "tenon_interaction", resume: "tenon_resume" },
      long: { httpOnly: true, sameSite: "lax" },
      short: { httpOnly: true, sameSite: "lax" },
    },
    // the addresses that clients of 2025-03-26 guess
    routes: { authorization: "/authorize", token: "/token", registration: "/register", revocation: "/revoke" },
    responseTypes: ["code"],
    scopes: [...STANDARD_SCOPES, ...scopes],
    clientAuthMethods: ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
    enabledJWA: {
      idTokenSigningAlgValues: [key.algorithm],
      clientAuthSigningAlgValues: ["ES256", "RS256", "PS256", "EdDSA", "Ed25519"],
    },
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    rotateRefreshToken: true,
    expiresWithSession: () => false,
    issueRefreshToken: (ctx, client) =>
      client.grantTypeAllowed("refresh_token") &&
      !ctx.oidc.entities.Grant?.getRejectedOIDCScope().split(" ").includes("offline_access"),
    // only what was just approved: each authorization has a grant of its own, and so a family of refresh tokens
    loadExistingGrant: async (ctx) => {
      const { result } = ctx.oidc;
      return result?.consent?.grantId ? ctx.oidc.provider.Grant.find(result.consent.grantId) : undefined;
    },
    findAccount: (_ctx, sub) =>
      users.length === 0 || users.includes(sub) ? { accountId: sub, claims: () => ({ sub }) } : undefined,
    clientBasedCORS: (_ctx, origin, client) =>
      origin !== "null" &&
      client.clientAuthMethod === "none" &&
      (client.redirectUris ?? []).some((uri) => URL.canParse(uri) && new URL(uri).origin === origin),
    ttl: {
      AccessToken: tokenSeconds,
      ClientCredentials: tokenSeconds,
      AuthorizationCode: MINUTE,
      IdToken: tokenSeconds,
      Interaction: 10 * MINUTE,
      RefreshToken: DAY,
      Grant: DAY,
      Session: DAY,
    },
    interactions: { policy: policy(library), url: (_ctx, { uid }) => `/interaction/${uid}` },
    renderError: (ctx, out) => {
      ctx.type = "html";
      ctx.set("content-security-policy", pagePolicy());
      ctx.body = errorPage("This cannot go on", `${out.error}: ${out.error_description ?? "no further reason"}`);
    },
    features: {
      clientCredentials: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
      registration: { enabled: settings.registration, issueRegistrationAccessToken: false },
      resourceIndicators: resourceIndicators(library, settings),
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
    },
  };
}

/** One line for whoever develops against the server: what was refused, and why. */
function watch(provider: Provider, log: AuthServerSettings["log"]): void {
  const refused =
    (what: string) => (_ctx: unknown, error: Error & { error_description?: string; error_detail?: string }) =>
      log(
        `${what} refused: ${[error.message, error.error_description, error.error_detail].filter(Boolean).join(" · ")}`,
      );
  provider.on("authorization.error", refused("authorization"));
  provider.on("grant.error", refused("token"));
  provider.on("registration_create.error", refused("registration"));
  provider.on("server_error", refused("request"));
}

/**
 * The authorization server itself: OAuth 2.1 with what MCP asks of one.
 * @throws when a client of the settings is not valid; the message names what is wrong with it
 */
export async function createProvider(settings: AuthServerSettings): Promise<Provider> {
  const library = await loadLibrary();
  const provider = new library.Provider(settings.issuer, configuration(library, settings));
  provider.proxy = settings.issuer.startsWith("https:");
  watch(provider, settings.log);
  for (const { client_id: id } of settings.clients) await provider.Client.find(id);
  return provider;
}
