import { type LookupAddress, type LookupOptions, lookup as lookUp } from "node:dns";
import type { LookupFunction } from "node:net";
import { rootCertificates } from "node:tls";
import type { FetchLike } from "@modelcontextprotocol/client";
import { type AuthError, isLoopback, TenonError } from "@tenon/core";
import { parseUrl, readBounded, shownValue } from "@tenon/core/internal";
import { Agent, type buildConnector, type Dispatcher, ProxyAgent, request } from "undici";
import { refusalCode } from "../connection/failure.ts";
import { shownAddress } from "../connection/place.ts";
import { proxyFor } from "../connection/proxy.ts";
import { unsafeReason } from "../trust/url.ts";
import { type Reach, reachOf, reachOfHost } from "./addresses.ts";
import { authError } from "./errors.ts";
import type { AuthTarget } from "./types.ts";

/** Bytes that metadata, a registration or a token answer may have; real ones have some kilobytes. */
const MAX_BYTES = 256 * 1024;
const TIMEOUT_MS = 10_000;

/** Which addresses may be asked besides the server's own, and how. */
export interface Guard {
  /** `fetch` for metadata, registrations and tokens: no redirects, bounded in size and time, on checked addresses only. */
  readonly fetch: FetchLike;
  /** Refuses an address before anything is sent there. @throws AuthError `unsafe_url` */
  check(url: URL | string, what: string): URL;
}

/** Settings of a guard. */
export interface GuardOptions {
  readonly allowPrivateNetwork?: boolean | undefined;
  /** Addresses that the configuration names itself; their hosts are trusted like the server's. */
  readonly configured?: readonly (string | undefined)[];
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for one request, its answer included. Default 10,000, or the server's `connectTimeoutMs` if that is more. */
  readonly limitMs?: number;
}

type Resolve = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A lookup whose result is what is connected to, without the addresses that are not allowed: a name cannot say one thing when
 * it is checked and another when it is used.
 */
export function guardedLookup(
  allowed: (reach: Reach) => boolean,
  refuse: (hostname: string) => Error,
  resolve: Resolve = lookUp,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const good = error ? [] : addresses.filter(({ address }) => allowed(reachOf(address)));
      const [first] = good;
      if (error || !first) return callback(error ?? refuse(hostname), "", 0);
      if (options.all) callback(null, good);
      else callback(null, first.address, first.family);
    });
  };
}

/**
 * The guard for what a server's metadata leads to: https (http on this machine only), no address of this machine, of private
 * networks or of the link, unless the server itself is configured on such a one or `allowPrivateNetwork` says so. Addresses of
 * the link, where cloud providers keep credentials, are never asked.
 */
export function createGuard({ server, config, signal: closing }: AuthTarget, options: GuardOptions): Guard {
  const own = new URL(config.url);
  const origins = new Set([own, ...(options.configured ?? []).flatMap((url) => parseUrl(url ?? "") ?? [])]);
  const trusted = new Set([...origins].map(({ origin }) => origin));
  const reaches = new Set([...origins].map(({ hostname }) => reachOfHost(hostname)));
  const allowed = (reach: Reach): boolean =>
    reach === "public" || reaches.has(reach) || (options.allowPrivateNetwork === true && reach !== "link");
  const refuse = (url: string, why: string): AuthError =>
    authError(
      server,
      "unsafe_url",
      `its authorization leads to ${shownValue(url, 200)}, which ${why}; it was not asked`,
      {
        data: { url: url.slice(0, 1_000) },
      },
    );
  const inside = "is on this machine or in a private network. Set allowPrivateNetwork if that is right";

  const check = (given: URL | string, what: string): URL => {
    const url = parseUrl(String(given));
    const why = url ? unsafeReason(url) : "is no address";
    if (!url || why) throw refuse(String(given), `${why} (${what})`);
    const reach = trusted.has(url.origin) ? undefined : reachOfHost(url.hostname);
    if (reach !== undefined && !allowed(reach)) throw refuse(url.href, inside);
    return url;
  };

  const dispatcherFor = (url: URL): Dispatcher => {
    const isOwn = url.origin === own.origin;
    const proxy =
      isLoopback(url.hostname) || (isOwn && config.socketPath !== undefined) ? undefined : proxyFor(url, process.env);
    const ca = config.ca === undefined ? [] : [config.ca].flat();
    const tls: buildConnector.BuildOptions = {
      timeout: config.connectTimeoutMs ?? 5_000,
      rejectUnauthorized: true,
      ...(ca.length > 0 && { ca: isOwn ? ca : [...rootCertificates, ...ca] }),
      ...(isOwn && config.socketPath !== undefined && { socketPath: config.socketPath }),
    };
    // the proxy looks the name up; what it may reach is its owner's to say
    if (proxy !== undefined) return new ProxyAgent({ uri: proxy, requestTls: tls });
    const lookup = trusted.has(url.origin) ? undefined : guardedLookup(allowed, (host) => refuse(host, inside));
    return new Agent({ connect: { ...tls, ...(lookup && { lookup }) } });
  };

  const limitMs = options.limitMs ?? Math.max(TIMEOUT_MS, config.connectTimeoutMs ?? 0);
  const send = async (url: URL, init: RequestInit): Promise<Response> => {
    const dispatcher = dispatcherFor(url);
    const late = AbortSignal.timeout(limitMs);
    const signals = [late, closing, options.signal, init.signal].filter((one) => one instanceof AbortSignal);
    try {
      const { statusCode, headers, body } = await request(url, {
        dispatcher,
        method: init.method ?? "GET",
        headers: { "user-agent": "tenon", ...Object.fromEntries(new Headers(init.headers)) },
        body: init.body === undefined || init.body === null ? null : String(init.body), // texts and URLSearchParams
        signal: AbortSignal.any(signals),
      });
      const text = await readBounded(body, MAX_BYTES);
      if (text === undefined) {
        throw authError(server, "discovery_failed", `${shownAddress(url)} answers with more than ${MAX_BYTES} bytes`);
      }
      const answer = new Headers();
      for (const [name, value] of Object.entries(headers)) {
        for (const one of [value ?? []].flat()) answer.append(name, one);
      }
      const empty = [101, 204, 205, 304].includes(statusCode);
      return new Response(empty ? null : text, { status: Math.max(200, statusCode), headers: answer });
    } catch (error) {
      if (error instanceof TenonError) throw error;
      const cause = error instanceof Error && error.cause instanceof TenonError ? error.cause : undefined;
      if (cause) throw cause;
      const reason = late.aborted
        ? `did not answer within ${limitMs} ms`
        : `cannot be reached (${refusalCode(error) ?? (error instanceof Error ? error.message : "?")})`;
      throw authError(server, "discovery_failed", `${shownAddress(url)} ${reason}`, { retryable: true });
    } finally {
      await dispatcher.destroy().catch(() => {});
    }
  };

  return {
    check,
    // redirects are answers like others; the SDK follows those within an origin by asking again
    fetch: async (input, init = {}) => send(check(input, "metadata or token endpoint"), init),
  };
}
