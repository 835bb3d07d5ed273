import { refreshAuthorization } from "@modelcontextprotocol/client";
import { ConfigError, isLoopback } from "@tenon/core";
import { checkOptions, parseUrl } from "@tenon/core/internal";
import { openInBrowser } from "../terminal/open.ts";
import { type AuthorizationRequest, authorize, identityOptions, type OnAuthorize } from "./authorize.ts";
import { asAuthError, authError, oauthErrorOf, reasonOf } from "./errors.ts";
import { keepTokens, type Order } from "./keeper.ts";
import { COMMON, type CommonOptions, checkCommon, sourceOf } from "./options.ts";
import { type KnownClient, knownIdentity } from "./registration.ts";
import { storeKeys } from "./store.ts";
import { ASKING } from "./tokens.ts";
import type { Auth } from "./types.ts";

/** Options of `oauth`. */
export interface OAuthOptions extends CommonOptions {
  /**
   * Where the browser comes back to. Default: this machine, `http://127.0.0.1:<a free port>/callback`. On this machine the
   * client listens there itself while it waits; any other address is your program's, see `onAuthorize`.
   */
  redirectUrl?: string;
  /**
   * Address of this client's metadata document, which is its id where the authorization server takes such: https, or http on this
   * machine, which an authorization server on this machine is told of and no other.
   */
  clientMetadataUrl?: string;
  /** A client that the authorization server knows already; goes before `clientMetadataUrl` and registration. */
  client?: KnownClient;
  /** What people see when they are asked. Default "Tenon". */
  clientName?: string;
  /**
   * Shows the sign-in to a person. Default: opens the browser of this machine. `false`: nobody can be asked here, and a missing
   * token is `auth_required`.
   */
  onAuthorize?: OnAuthorize | false;
  /** Milliseconds a person has. Default 300,000. */
  timeoutMs?: number;
}

const KEYS = ["redirectUrl", "clientMetadataUrl", "client", "clientName", "onAuthorize", "timeoutMs", ...COMMON];
const TIMEOUT_MS = 300_000;

function wrong(message: string): never {
  throw new ConfigError(`oauth(options)${message}`, { code: "invalid_option" });
}

const TODO =
  "give oauth() an onAuthorize that shows the address to somebody, sign in once on a machine with a browser and share its " +
  "fileTokenStore, or use clientCredentials()";

/** Whether a browser could appear here. */
function hasScreen(): boolean {
  if (process.platform !== "linux") return true;
  return ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].some((name) => process.env[name]);
}

async function openHere({ url, server }: AuthorizationRequest): Promise<undefined> {
  try {
    if (!hasScreen()) throw new Error("there is no screen");
    await openInBrowser(url);
  } catch (error) {
    throw authError(
      server,
      "auth_required",
      `somebody has to sign in, and no browser opens here (${reasonOf(error)}); ${TODO}`,
    );
  }
}

function refuseToAsk({ server }: Pick<AuthorizationRequest, "server">): never {
  throw authError(
    server,
    "auth_required",
    `somebody has to sign in, and nobody is asked here (onAuthorize: false); ${TODO}`,
  );
}

function checkOAuth(options: OAuthOptions): void {
  checkOptions(options, KEYS, "oauth(options)");
  checkCommon(options, "oauth(options)");
  const { redirectUrl, clientMetadataUrl, client, onAuthorize, timeoutMs, clientName } = options;
  if (redirectUrl !== undefined && !URL.canParse(redirectUrl)) wrong(".redirectUrl must be an address");
  const document = parseUrl(clientMetadataUrl ?? "");
  const here = document?.protocol === "http:" && isLoopback(document.hostname);
  const usable = document?.pathname !== "/" && (here || document?.protocol === "https:");
  if (clientMetadataUrl !== undefined && !usable) {
    wrong(
      ".clientMetadataUrl must be an https address with a path, such as https://example.com/client.json (or http on this " +
        "machine, for an authorization server that is here, too)",
    );
  }
  if (client !== undefined) {
    checkOptions(client, ["clientId", "clientSecret"], "oauth(options).client");
    const texts: unknown[] = [client.clientId, client.clientSecret ?? "-"];
    if (!texts.every((text) => typeof text === "string" && text !== ""))
      wrong(".client needs a clientId, and texts only");
  }
  if (clientName !== undefined && typeof clientName !== "string") wrong(".clientName must be a text");
  if (onAuthorize !== undefined && onAuthorize !== false && typeof onAuthorize !== "function") {
    wrong(".onAuthorize must be a function, or false");
  }
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    wrong(".timeoutMs must be a positive number of milliseconds");
  }
}

/**
 * Has a person sign in at the server's authorization server when a token is needed, and keeps the tokens fresh after that:
 * OAuth 2.1 as the revision asks for it (2026-07-28, basic/authorization).
 *
 * @throws ConfigError `invalid_option`, `unknown_option`; calls then reject with AuthError
 * @example createClient({ servers: { mail: { url: "https://mail.example/mcp", auth: oauth({ store: fileTokenStore(path) }) } } })
 */
export function oauth(options: OAuthOptions = {}): Auth {
  checkOAuth(options);
  const { redirectUrl, clientMetadataUrl, client, clientName = "Tenon", onAuthorize = openHere } = options;
  const identity = { client, clientMetadataUrl, clientName };
  const refresh = async (order: Order, refreshToken: string) => {
    const { server, issuer, metadata, resource, guard, dpop } = order;
    const known = await knownIdentity(identityOptions(order, identity));
    if (!known) {
      throw authError(
        server,
        "token_request_failed",
        "the client that the refresh token was given to is not known any more",
        {
          data: { error: "invalid_client" },
        },
      );
    }
    guard.check(metadata.token_endpoint, "token endpoint");
    try {
      return await refreshAuthorization(issuer, {
        metadata,
        clientInformation: known.info,
        refreshToken,
        resource,
        fetchFn: guard.fetch,
        ...(dpop && { dpop }),
      });
    } catch (error) {
      const failure = asAuthError(server, error, ASKING(issuer), [refreshToken, known.info.client_secret]);
      // whoever does not know the client any more would not show it to a person either
      if (known.from === "registration" && oauthErrorOf(failure) === "invalid_client") {
        await order.store.set(storeKeys.client(issuer), undefined);
      }
      throw failure;
    }
  };
  return keepTokens({
    ...sourceOf("oauth", options),
    owner: client?.clientId ?? "",
    bound: client?.clientSecret === undefined ? undefined : client.clientId,
    interactive: true,
    obtain: async (order) => {
      if (onAuthorize === false) return refuseToAsk(order);
      const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
      return authorize(order, { ...identity, onAuthorize, redirectUrl, timeoutMs });
    },
    refresh,
  });
}
