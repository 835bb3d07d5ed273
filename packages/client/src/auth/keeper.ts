import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { computeScopeUnion, type DpopSession, type OAuthTokens } from "@modelcontextprotocol/client";
import { type AuthError, isRecord, TenonError } from "@tenon/core";
import { shownValue } from "@tenon/core/internal";
import { type Discovered, discover, discoverIssuer } from "./discovery.ts";
import { openDpop } from "./dpop.ts";
import { authError, oauthErrorOf, saidOf } from "./errors.ts";
import { Flights } from "./flights.ts";
import { createGuard, type Guard } from "./guard.ts";
import { presenter } from "./present.ts";
import { MAX_STEP_UPS, StepUps } from "./step-up.ts";
import { isTokenSet, storeKeys, type TokenSet, type TokenStore } from "./store.ts";
import type { Auth, AuthKind, AuthSession, AuthTarget, Credential, RefusedRequest } from "./types.ts";

/** Milliseconds before its end that a token is renewed; half its life for a short one. */
const SPARE_MS = 60_000;
/** Refusals that make a refresh token useless: revoked, used already, of another client or bound to another key. */
const REFUSED_FOR_GOOD = ["invalid_grant", "invalid_client", "invalid_dpop_proof", "unauthorized_client"];

/** What a request for tokens is made from. */
export interface Order extends Discovered {
  readonly server: string;
  readonly guard: Guard;
  readonly scope: string | undefined;
  readonly dpop: DpopSession | undefined;
  readonly store: TokenStore;
  /** Ends the request; a person who is asked is not waited for any longer. */
  readonly signal: AbortSignal;
}

/** One way to get tokens. */
export interface TokenSource {
  readonly kind: AuthKind;
  readonly store: TokenStore;
  /** Scopes asked for besides what a server demands. */
  readonly scopes: readonly string[];
  readonly issuer: string | undefined;
  readonly dpop: boolean;
  readonly allowPrivateNetwork: boolean | undefined;
  /** Addresses of the configuration besides the server's. */
  readonly configured: readonly (string | undefined)[];
  /** Tells clients of one kind apart that share a store. */
  readonly owner: string;
  /** A client id whose secret goes to one issuer only, the first where none is configured. */
  readonly bound: string | undefined;
  /** Whether a person takes part. */
  readonly interactive: boolean;
  obtain(order: Order): Promise<OAuthTokens>;
  /** Renews tokens without a person. @throws AuthError `token_request_failed` */
  refresh?(order: Order, refreshToken: string): Promise<OAuthTokens>;
}

/** What the sessions of one `Auth` share. */
interface Shared {
  readonly source: TokenSource;
  readonly flights: Flights;
  /** By address of the server. */
  readonly tokens: Map<string, TokenSet>;
  dpop: Promise<DpopSession> | undefined;
}

const isDue = (time: number | undefined): boolean => time !== undefined && Date.now() >= time;

/** The session for one server: tokens in memory and in the store, renewed in time, asked for when a server wants them. */
class Keeper implements AuthSession {
  readonly #shared: Shared;
  readonly #source: TokenSource;
  readonly #target: AuthTarget;
  readonly #server: string;
  /** The server's address, without what is no part of it. */
  readonly #url: string;
  readonly #owner: string;
  #dpop: DpopSession | undefined;
  #found: Discovered | undefined;
  readonly #stepUps: StepUps;

  constructor(shared: Shared, target: AuthTarget) {
    this.#shared = shared;
    this.#source = shared.source;
    this.#target = target;
    setMaxListeners(0, target.signal); // one listener a waiting call: no leak, however many
    this.#server = target.server;
    this.#stepUps = new StepUps(target.server, shared.source.interactive);
    this.#owner = `${shared.source.kind} ${shared.source.owner}`.trim();
    const url = new URL(target.config.url);
    url.hash = "";
    this.#url = url.href;
  }

  async credential(): Promise<Credential | undefined> {
    let tokens = this.#shared.tokens.get(this.#url) ?? (await this.#load());
    if (tokens && isDue(tokens.renewAt)) tokens = await this.#renewInTime(tokens);
    if (!tokens) return undefined;
    const dpop = tokens.tokenType.toLowerCase() === "dpop" ? await this.#dpopSession() : undefined;
    return presenter(tokens.principal, tokens.accessToken, dpop);
  }

  again(answer: Response, url: URL): boolean {
    return this.#dpop !== undefined && observe(this.#dpop, answer, url);
  }

  async refused(request: RefusedRequest, times: number): Promise<void> {
    const { status, challenge, token } = request;
    const known = this.#shared.tokens.get(this.#url);
    // somebody else has a newer one since this request went out
    if (known && known.accessToken !== token && times <= MAX_STEP_UPS) return;
    if (status === 403) this.#stepUps.check(challenge.scope, known, times);
    else if (times > 1) throw this.#invalidToken(request);
    await this.#shared.flights.join(this.#server, this.#url, this.#target.signal, async (signal) => {
      const stored = await this.#load();
      if (stored && stored.accessToken !== token && !isDue(stored.expiresAt)) return;
      const guard = this.#guard(signal);
      const found = await this.#discover(guard, challenge.resourceMetadataUrl);
      const asked = computeScopeUnion(challenge.scope, this.#source.scopes.join(" "));
      const wanted =
        status === 403 ? computeScopeUnion(stored?.scope, asked) : (asked ?? found.scopesSupported?.join(" "));
      const scope = withOffline(wanted, found, this.#source.interactive);
      const order = { ...found, ...(await this.#orderBase(guard, signal)) };
      if (status === 401 && stored?.refreshToken !== undefined && stored.issuer === found.issuer) {
        if (await this.#refresh({ ...order, scope: stored.scope }, stored)) return;
      }
      if (this.#source.interactive || status === 403) this.#stepUps.count(challenge.scope);
      const fresh = await this.#source.obtain({ ...order, scope });
      const principal = status === 403 && stored ? stored.principal : randomUUID();
      const kept = await this.#keep(
        order,
        fresh,
        scope,
        this.#source.interactive ? principal : this.#ownPrincipal(order),
      );
      if (status === 403) this.#stepUps.checkGranted(challenge.scope, kept);
    });
  }

  /** Programs are who they are, however often they ask. */
  #ownPrincipal({ issuer, resource }: Discovered): string {
    return JSON.stringify([this.#source.kind, this.#source.bound ?? "", issuer, resource]);
  }

  #invalidToken(request: RefusedRequest): AuthError {
    const todo = this.#source.interactive
      ? "sign in as somebody who may use it, or ask who runs it"
      : "check that this client is known there and may use it";
    return authError(
      this.#server,
      "invalid_token",
      `it refuses a token that was just made for it${saidOf(request)}; ${todo}`,
      {
        data: { status: 401 },
      },
    );
  }

  async #load(): Promise<TokenSet | undefined> {
    const { store } = this.#source;
    const last = await store.get(storeKeys.server(this.#owner, this.#url));
    if (!isRecord(last) || typeof last.issuer !== "string" || typeof last.resource !== "string") return undefined;
    const kept = await store.get(storeKeys.tokens(this.#owner, last.issuer, last.resource));
    const tokens = isTokenSet(kept) ? kept : undefined;
    if (tokens) this.#shared.tokens.set(this.#url, tokens);
    else this.#shared.tokens.delete(this.#url);
    return tokens;
  }

  /** First into the store, then into use: what was rotated away must not be all that is left after a crash. */
  async #keep({ issuer, resource }: Discovered, fresh: OAuthTokens, asked: string | undefined, principal: string) {
    const now = Date.now();
    const lifetime = fresh.expires_in !== undefined && fresh.expires_in > 0 ? fresh.expires_in * 1_000 : undefined;
    const scope = fresh.scope ?? asked;
    if (this.#source.dpop && fresh.token_type.toLowerCase() !== "dpop") {
      throw authError(
        this.#server,
        "dpop_unsupported",
        `the authorization server ${issuer} does not bind tokens to a key (DPoP); take dpop: true away if a plain token will do`,
      );
    }
    const tokens: TokenSet = {
      issuer,
      resource,
      principal,
      accessToken: fresh.access_token,
      tokenType: fresh.token_type,
      ...(fresh.refresh_token !== undefined && { refreshToken: fresh.refresh_token }),
      ...(scope !== undefined && { scope }),
      ...(lifetime !== undefined && {
        expiresAt: now + lifetime,
        renewAt: now + Math.max(lifetime - SPARE_MS, lifetime / 2),
      }),
    };
    const { store } = this.#source;
    await store.set(storeKeys.tokens(this.#owner, issuer, resource), tokens);
    await store.set(storeKeys.server(this.#owner, this.#url), { issuer, resource });
    this.#shared.tokens.set(this.#url, tokens);
    return tokens;
  }

  async #forgetTokens({ issuer, resource }: TokenSet): Promise<void> {
    await this.#source.store.set(storeKeys.tokens(this.#owner, issuer, resource), undefined);
    this.#shared.tokens.delete(this.#url);
  }

  /** Renews tokens shortly before they end; undefined when only a person could, and they have ended. */
  async #renewInTime(tokens: TokenSet): Promise<TokenSet | undefined> {
    const over = isDue(tokens.expiresAt);
    const { refresh, interactive } = this.#source;
    if (interactive && (tokens.refreshToken === undefined || !refresh)) return over ? undefined : tokens;
    try {
      await this.#shared.flights.join(this.#server, this.#url, this.#target.signal, async (signal) => {
        const stored = await this.#load();
        if (!stored || !isDue(stored.renewAt)) return;
        const guard = this.#guard(signal);
        const found = await this.#foundBefore(stored, guard);
        const order = { ...found, ...(await this.#orderBase(guard, signal)), scope: stored.scope };
        if (stored.refreshToken !== undefined && refresh) await this.#refresh(order, stored);
        else await this.#keep(order, await this.#source.obtain(order), stored.scope, stored.principal);
      });
    } catch (error) {
      // there is time for another attempt
      if (!over && error instanceof TenonError && error.retryable) return tokens;
      throw error;
    }
    return this.#shared.tokens.get(this.#url);
  }

  /** Where tokens came from: what was found last may be another place, where nobody signed in and to which they are worth stealing. */
  async #foundBefore({ issuer, resource }: TokenSet, guard: Guard): Promise<Discovered> {
    if (this.#found?.issuer === issuer && this.#found.resource === resource) return this.#found;
    const metadata = await discoverIssuer(this.#server, issuer, guard);
    return { issuer, resource, metadata, scopesSupported: undefined };
  }

  /** One refresh among all processes that share the store. @returns false when the refresh token is of no use any more */
  async #refresh(order: Order, before: TokenSet): Promise<boolean> {
    const { store, refresh } = this.#source;
    if (!refresh) return false;
    return store.exclusively(storeKeys.tokens(this.#owner, before.issuer, before.resource), async () => {
      const now = await this.#load();
      if (now && now.accessToken !== before.accessToken) return true;
      if (now?.refreshToken === undefined) return false;
      try {
        await this.#keep(order, await refresh(order, now.refreshToken), now.scope, now.principal);
        return true;
      } catch (error) {
        if (!REFUSED_FOR_GOOD.includes(oauthErrorOf(error) ?? "")) throw error;
        await this.#forgetTokens(now);
        return false;
      }
    });
  }

  #guard(signal: AbortSignal): Guard {
    const { allowPrivateNetwork, configured } = this.#source;
    return createGuard(this.#target, { allowPrivateNetwork, configured, signal });
  }

  async #dpopSession(): Promise<DpopSession> {
    this.#shared.dpop ??= openDpop(this.#source.store);
    this.#dpop = await this.#shared.dpop;
    return this.#dpop;
  }

  async #orderBase(guard: Guard, signal: AbortSignal) {
    const { store, dpop } = this.#source;
    return { server: this.#server, guard, signal, store, dpop: dpop ? await this.#dpopSession() : undefined };
  }

  async #discover(guard: Guard, resourceMetadataUrl: URL | undefined): Promise<Discovered> {
    const { issuer, bound, store } = this.#source;
    const found = await discover(this.#target, guard, { resourceMetadataUrl, issuer });
    if (bound !== undefined && issuer === undefined) {
      const key = storeKeys.issuer(this.#owner);
      // of servers that share a secret, each may name an issuer at the same time: one of them is the first
      const first = await store.exclusively(key, async () => {
        const known = await store.get(key);
        if (known === undefined) await store.set(key, found.issuer);
        return known ?? found.issuer;
      });
      if (first !== found.issuer) {
        throw authError(
          this.#server,
          "issuer_mismatch",
          `it names another authorization server (${shownValue(found.issuer, 200)}) than the one this client first signed in ` +
            `at (${shownValue(first, 200)}); its secret was not sent there. If that is right, configure \`issuer\``,
          { data: { expected: first } },
        );
      }
    }
    this.#found = found;
    return found;
  }
}

/** Notes a nonce (RFC 9449 section 8.2); true when the answer only asks for one that was not known. */
function observe(dpop: DpopSession, answer: Response, url: URL): boolean {
  const before = dpop.nonceFor(url);
  dpop.observeNonce(answer, url);
  const asks = answer.status === 401 && /use_dpop_nonce/i.test(answer.headers.get("www-authenticate") ?? "");
  return asks && dpop.nonceFor(url) !== before;
}

/** A refresh token is worth asking for where a person would have to sign in again (SEP-2207). */
function withOffline(scope: string | undefined, { metadata }: Discovered, interactive: boolean): string | undefined {
  if (scope === undefined || !interactive || !metadata.scopes_supported?.includes("offline_access")) return scope;
  return computeScopeUnion(scope, "offline_access");
}

/** An `Auth` whose tokens come from `source`. */
export function keepTokens(source: TokenSource): Auth {
  const shared: Shared = { source, flights: new Flights(), tokens: new Map(), dpop: undefined };
  return Object.freeze({ kind: source.kind, open: (target: AuthTarget) => new Keeper(shared, target) });
}
