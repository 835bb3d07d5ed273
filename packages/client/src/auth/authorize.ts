import { randomBytes } from "node:crypto";
import {
  exchangeAuthorization,
  type OAuthTokens,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from "@modelcontextprotocol/client";
import { type AuthError, codeOf, isLoopback, TenonError } from "@tenon/core";
import { parseUrl, shownValue } from "@tenon/core/internal";
import { withSignal } from "../connection/deadline.ts";
import { asAuthError, authError, oauthErrorOf, reasonOf } from "./errors.ts";
import type { Order } from "./keeper.ts";
import { listenForRedirect, type RedirectListener } from "./loopback.ts";
import {
  type ClientIdentity,
  type IdentityOptions,
  type KnownClient,
  knownIdentity,
  register,
} from "./registration.ts";
import { sameText } from "./same-text.ts";
import { storeKeys } from "./store.ts";
import { ASKING } from "./tokens.ts";

/** A sign-in that a person has to make. */
export interface AuthorizationRequest {
  /** The address to open in the person's browser: https, or http on this machine. Never fetch it, never hand it to a shell. */
  readonly url: string;
  /** Configured name of the server that wants it. */
  readonly server: string;
  /** The authorization server that will ask the person. */
  readonly issuer: string;
  /** What is asked for. */
  readonly scopes: readonly string[];
  /** Where the browser comes back to. */
  readonly redirectUrl: string;
  /** Aborts when the sign-in is over, the time for it is, or the client is closed. */
  readonly signal: AbortSignal;
}

/**
 * Has a person sign in. Where `redirectUrl` is on this machine nothing more is needed; otherwise the address the browser came
 * back to is returned, with its query.
 */
export type OnAuthorize = (
  request: AuthorizationRequest,
  // biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing gives a Promise<void>
) => undefined | string | URL | void | Promise<undefined | string | URL | void>;

/** How a person is asked. */
export interface AuthorizeOptions {
  readonly onAuthorize: (request: AuthorizationRequest) => unknown;
  /** Undefined: on this machine, on a free port. */
  readonly redirectUrl: string | undefined;
  readonly client: KnownClient | undefined;
  readonly clientMetadataUrl: string | undefined;
  readonly clientName: string;
  /** Milliseconds a person has. */
  readonly timeoutMs: number;
}

const CALLBACK = "http://127.0.0.1/callback";

/** PKCE with S256 or nothing (2026-07-28, authorization): metadata that does not list it means no support. */
function checkPkce({ server, issuer, metadata }: Order): void {
  if (metadata.code_challenge_methods_supported?.includes("S256")) return;
  throw authError(
    server,
    "pkce_unsupported",
    `the authorization server ${issuer} does not say that it supports PKCE with S256, without which a code could be stolen; ` +
      "ask who runs it to add code_challenge_methods_supported to its metadata",
  );
}

/** A listener at the wanted address; a port of an earlier registration that is taken now is given up. */
async function openListener(
  wanted: string | undefined,
  known: string | undefined,
): Promise<RedirectListener | undefined> {
  const url = new URL(wanted ?? known ?? CALLBACK);
  if (url.protocol !== "http:" || !isLoopback(url.hostname)) return undefined;
  try {
    return await listenForRedirect(url);
  } catch (error) {
    if (wanted === undefined && known !== undefined && codeOf(error) === "EADDRINUSE") {
      return listenForRedirect(new URL(CALLBACK));
    }
    throw error;
  }
}

/** What else came while nobody signed in: a page on this machine that guesses, or an authorization server that loses the state. */
const turnedAway = (listener: RedirectListener | undefined): string =>
  listener && listener.strangers > 0
    ? `. Answers to another sign-in than the one that was begun came (${listener.strangers}); nothing was taken from them`
    : "";

/** What the browser came back with. @throws AuthError `authorization_timeout`, `authorization_failed` */
async function askPerson(
  { server, issuer, signal }: Order,
  options: AuthorizeOptions,
  request: Omit<AuthorizationRequest, "signal">,
  state: string,
  listener: RedirectListener | undefined,
): Promise<URLSearchParams> {
  const listened = listener?.answer(state);
  const late = AbortSignal.timeout(options.timeoutMs);
  const ending = new AbortController();
  const shown = { ...request, signal: AbortSignal.any([signal, late, ending.signal]) };
  const answered = async (): Promise<URLSearchParams> => {
    const given: unknown = await options.onAuthorize(Object.freeze(shown));
    const back = given === undefined || given === null ? undefined : parseUrl(String(given));
    if (back) return back.searchParams;
    if (listened && (given === undefined || given === null)) return listened;
    throw authError(
      server,
      "authorization_failed",
      `onAuthorize must return the address the browser came back to, which redirectUrl ${request.redirectUrl} sends it to`,
    );
  };
  const asking = answered();
  asking.catch(() => {}); // it may lose the race
  try {
    const first = listened ? Promise.race([asking, listened]) : asking;
    return await withSignal(first, shown.signal, () =>
      late.aborted
        ? authError(
            server,
            "authorization_timeout",
            `nobody signed in at ${issuer} within ${Math.round(options.timeoutMs / 1_000)} s; call again when somebody can, or raise timeoutMs${turnedAway(listener)}`,
            { retryable: true },
          )
        : authError(server, "closed", "the sign-in was given up, because nobody waits for it any more"),
    );
  } catch (error) {
    if (error instanceof TenonError) throw error;
    throw authError(server, "authorization_failed", `the sign-in could not be shown to anybody: ${reasonOf(error)}`, {
      cause: error,
    });
  } finally {
    ending.abort();
  }
}

/** Checks the answer in the order that trusts nothing unchecked: state, issuer, error, code. @returns the code */
function readAnswer({ server, issuer, metadata }: Order, params: URLSearchParams, state: string): string {
  const fail = (code: string, message: string, data?: unknown): AuthError => authError(server, code, message, { data });
  if (!sameText(params.get("state") ?? "", state)) {
    throw fail(
      "state_mismatch",
      "the browser came back with another sign-in than the one that was begun, which somebody may have slipped in; nothing " +
        "was taken from it. Sign in again, from the address this program shows",
    );
  }
  try {
    validateAuthorizationResponseIssuer({
      iss: params.get("iss") ?? undefined,
      expectedIssuer: issuer,
      issParameterSupported: metadata.authorization_response_iss_parameter_supported === true,
    });
  } catch (error) {
    throw asAuthError(server, error, { code: "authorization_failed", doing: "signing in" });
  }
  const error = params.get("error");
  if (error === "access_denied") {
    throw fail("authorization_denied", "the sign-in was declined; call again to be asked again");
  }
  const code = params.get("code");
  if (error !== null || code === null) {
    const description = params.get("error_description");
    const said = error === null ? "neither a code nor an error came back" : shownValue(error, 60);
    const more = description === null ? "" : `, ${shownValue(description, 200)}`;
    throw fail("authorization_failed", `the authorization server ${issuer} refused the sign-in: ${said}${more}`, {
      ...(error !== null && { error: error.slice(0, 60) }),
    });
  }
  return code;
}

async function signIn(
  order: Order,
  options: AuthorizeOptions,
  identity: ClientIdentity,
  redirectUrl: string,
  listener: RedirectListener | undefined,
): Promise<OAuthTokens> {
  const { server, issuer, metadata, resource, scope, guard, dpop } = order;
  const { info } = identity;
  const state = randomBytes(32).toString("base64url");
  let begun: Awaited<ReturnType<typeof startAuthorization>>;
  try {
    begun = await startAuthorization(issuer, {
      metadata,
      clientInformation: info,
      redirectUrl,
      state,
      resource,
      ...(scope !== undefined && { scope }),
    });
  } catch (error) {
    throw asAuthError(server, error, { code: "authorization_failed", doing: "beginning a sign-in" });
  }
  const url = guard.check(begun.authorizationUrl, "authorization endpoint");
  guard.check(metadata.token_endpoint, "token endpoint");
  const scopes = url.searchParams.get("scope")?.split(" ") ?? [];
  const request = { url: url.href, server, issuer, scopes: Object.freeze(scopes), redirectUrl };
  const params = await askPerson(order, options, request, state, listener);
  const code = readAnswer(order, params, state);
  try {
    return await exchangeAuthorization(issuer, {
      metadata,
      clientInformation: info,
      authorizationCode: code,
      codeVerifier: begun.codeVerifier,
      redirectUri: redirectUrl,
      resource,
      fetchFn: guard.fetch,
      ...(params.has("iss") && { iss: params.get("iss") ?? "" }),
      ...(dpop && { dpop }),
    });
  } catch (error) {
    throw asAuthError(server, error, ASKING(issuer), [code, begun.codeVerifier, info.client_secret]);
  }
}

/**
 * Whether a sign-in failed because the registration is gone on the other side. Many authorization servers do not say so: they
 * leave the person on a page of theirs.
 */
function mayBeUnknown(error: unknown, old: boolean): boolean {
  if (["invalid_client", "unauthorized_client"].includes(oauthErrorOf(error) ?? "")) return true;
  return old && error instanceof TenonError && ["authorization_timeout", "authorization_failed"].includes(error.code);
}

/** What the identity of the client is chosen from. */
export function identityOptions(order: Order, options: Omit<IdentityOptions, keyof Order>): IdentityOptions {
  const { server, issuer, metadata, guard, store } = order;
  return { server, issuer, metadata, guard, store, ...options };
}

/**
 * Has a person sign in: authorization code with PKCE (OAuth 2.1), `state`, `iss` (RFC 9207) and `resource` (RFC 8707).
 * A client that the authorization server registered once and seems not to know any more is registered anew the next time.
 * @throws AuthError
 */
export async function authorize(order: Order, options: AuthorizeOptions): Promise<OAuthTokens> {
  checkPkce(order);
  const choice = identityOptions(order, options);
  const known = await knownIdentity(choice);
  const listener = await openListener(options.redirectUrl, known?.redirectUrl);
  const redirectUrl = options.redirectUrl ?? listener?.redirectUrl ?? CALLBACK;
  // a port that was configured as "any" is known now
  const back = listener?.redirectUrl ?? redirectUrl;
  try {
    const usable = known && (known.from !== "registration" || known.redirectUrl === back) ? known : undefined;
    const identity = usable ?? (await register(choice, back));
    try {
      return await signIn(order, options, identity, back, listener);
    } catch (error) {
      if (identity.from === "registration" && mayBeUnknown(error, usable !== undefined)) {
        await order.store.set(storeKeys.client(order.issuer), undefined);
      }
      throw error;
    }
  } finally {
    listener?.close();
  }
}
