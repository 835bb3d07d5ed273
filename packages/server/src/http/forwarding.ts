import type { IncomingMessage, RequestListener } from "node:http";
import type { TLSSocket } from "node:tls";
import { noteRemoteAddress, plainAddress } from "./remote-address.ts";
import type { TrustedProxies } from "./trusted-proxies.ts";

/** How a request looked where it entered: at the first proxy that is trusted. */
interface Entry {
  /** Where it came from; undefined where nobody knows (a unix socket, a hop that hides it). */
  readonly address: string | undefined;
  readonly host: string | undefined;
  readonly protocol: string;
}

type Reading<T> = T | { readonly problem: string };

/** Proxies on the way that are looked at; whoever is further out is not searched for. */
const MAX_HOPS = 32;
const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;
/** A node as proxies write it: an address, perhaps with a port (RFC 7239, section 6). */
const NODE = /^(?:\[([^\]]*)\]|([\d.]+))(?::[\w.-]+)?$/;
/** One `name=value` of `Forwarded`, and what follows it (RFC 7239, section 4). */
const PAIR = /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[^"\\]|\\.)*)")[ \t]*(;|,|$)/y;

/** How callers reached a request's first trusted proxy, where that is not how the proxy reached us. */
const protocols = new WeakMap<IncomingMessage, string>();

const isEncrypted = (request: IncomingMessage): boolean => (request.socket as Partial<TLSSocket>).encrypted === true; // only TLS sockets have it

/**
 * The address under which a caller reached this server, past trusted proxies: its origin, path and query. The host is the one
 * that was checked against `allowedHosts`.
 * @param request that `HttpSide.fetch` let through
 */
export function publicUrlOf(request: Request): URL {
  const url = new URL(request.url);
  // the request's target may name another host than the header (RFC 9112, section 3.2.2); only the header was checked
  const host = request.headers.get("host");
  return host === null ? url : new URL(`${url.protocol}//${host}${url.pathname}${url.search}`);
}

/**
 * Goes from the server outwards, to the first hop that is no trusted proxy: what is further out may be written by anybody.
 * @param hops what each proxy says about who called it, the nearest proxy last
 * @returns the address, and the place in `hops` where it stands; `hops.length` when nothing there can be read
 */
function walk(hops: readonly string[], peer: string | undefined, trusted: TrustedProxies) {
  let address = peer;
  let at = hops.length;
  for (const hop of hops.slice(-MAX_HOPS).reverse()) {
    if (at < hops.length && !(address !== undefined && trusted.has(address))) break;
    const node = NODE.exec(hop);
    const next = plainAddress(node ? (node[1] ?? node[2]) : hop);
    if (next === undefined) break; // "unknown", a made-up name: the last hop that has an address counts
    address = next;
    at -= 1;
  }
  return { address, at };
}

const listOf = (value: string | string[]): string[] =>
  value
    .toString()
    .split(",")
    .map((item) => item.trim());

/** `X-Forwarded-For`, `-Host`, `-Proto`. Of several hosts or protocols the last counts: the proxy next to us wrote it. */
function readXForwarded({ headers }: IncomingMessage, direct: Entry, trusted: TrustedProxies): Entry | undefined {
  const { "x-forwarded-for": hops, "x-forwarded-host": hosts, "x-forwarded-proto": protocols } = headers;
  if (hops === undefined && hosts === undefined && protocols === undefined) return undefined;
  return {
    address: hops === undefined ? direct.address : walk(listOf(hops), direct.address, trusted).address,
    host: hosts === undefined ? direct.host : listOf(hosts).at(-1),
    protocol: protocols === undefined ? direct.protocol : (listOf(protocols).at(-1) ?? "").toLowerCase(),
  };
}

/** The elements of `Forwarded`, the nearest proxy last; undefined for what is not in its form. */
function parseForwarded(text: string): Map<string, string>[] | undefined {
  const elements = [new Map<string, string>()];
  PAIR.lastIndex = 0;
  for (;;) {
    const [, name = "", token, quoted, end] = PAIR.exec(text) ?? [];
    const key = name.toLowerCase();
    const element = elements.at(-1);
    if (!element || end === undefined || element.has(key)) return undefined;
    element.set(key, token ?? (quoted ?? "").replace(/\\(.)/g, "$1"));
    if (end === "") return elements;
    if (end === ",") elements.push(new Map());
  }
}

/** `Forwarded` (RFC 7239): host and protocol are those of the proxy that names the caller. */
function readForwarded(request: IncomingMessage, direct: Entry, trusted: TrustedProxies): Reading<Entry> | undefined {
  const { forwarded } = request.headers;
  if (forwarded === undefined) return undefined;
  const elements = parseForwarded(forwarded.toString());
  if (!elements) return { problem: "The header Forwarded is not in the form of RFC 7239" };
  const hops = elements.map((element) => element.get("for") ?? "");
  const { address, at } = walk(hops, direct.address, trusted);
  const element = elements[Math.min(at, elements.length - 1)];
  return {
    address,
    host: element?.get("host") ?? direct.host,
    protocol: element?.get("proto")?.toLowerCase() ?? direct.protocol,
  };
}

/** What trusted proxies say about a request; `direct` when they say nothing. */
function readEntry(request: IncomingMessage, direct: Entry, trusted: TrustedProxies): Reading<Entry> {
  const x = readXForwarded(request, direct, trusted);
  const standard = readForwarded(request, direct, trusted);
  if (standard && "problem" in standard) return standard;
  // a proxy writes one kind and may pass on what a caller wrote of the other: which is whose, nobody can tell
  if (x && standard && !(["address", "host", "protocol"] as const).every((key) => x[key] === standard[key])) {
    return {
      problem: "The headers Forwarded and X-Forwarded-* disagree; let the proxy remove those it does not write",
    };
  }
  const entry = x ?? standard ?? direct;
  if (entry.host !== undefined && !HOST.test(entry.host)) {
    return { problem: "The host that the proxy passed on is no host name with an optional port" };
  }
  if (entry.protocol !== "http" && entry.protocol !== "https") {
    return { problem: "The protocol that the proxy passed on is neither http nor https" };
  }
  return entry;
}

/** Puts the host where it would stand without a proxy, for whatever reads it afterwards. */
function setHost(request: IncomingMessage, host: string): void {
  request.headers.host = host;
  const raw = request.rawHeaders;
  for (let at = raw.length - 2; at >= 0; at -= 2) if (raw[at]?.toLowerCase() === "host") raw.splice(at, 2);
  raw.push("Host", host);
}

/**
 * Reads what trusted proxies say about requests (`X-Forwarded-For`, `-Host`, `-Proto`, RFC 7239 `Forwarded`) before anything
 * else does, so that every later reader sees them as they entered. Of peers that are not trusted nothing is read.
 * @param unix whether peers come over a unix socket
 * @param listener what answers
 */
export function behindProxies(trusted: TrustedProxies, unix: boolean, listener: RequestListener): RequestListener {
  return (request, response) => {
    const peer = unix ? undefined : plainAddress(request.socket.remoteAddress);
    if (!(unix ? trusted.unix : peer !== undefined && trusted.has(peer))) return listener(request, response);
    const protocol = isEncrypted(request) ? "https" : "http";
    const entry = readEntry(request, { address: peer, host: request.headers.host, protocol }, trusted);
    if ("problem" in entry) {
      response.writeHead(400, { "content-type": "application/json", connection: "close" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message: entry.problem } }));
      return;
    }
    noteRemoteAddress(request, entry.address);
    if (entry.protocol !== protocol) protocols.set(request, entry.protocol);
    if (entry.host !== undefined && entry.host !== request.headers.host) setHost(request, entry.host);
    return listener(request, response);
  };
}

/** Gives `listener`, which builds web requests, the protocol that callers used: it goes into the request's target. */
export function withPublicTarget(listener: RequestListener): RequestListener {
  return (request, response) => {
    const { url = "", headers } = request;
    const protocol = protocols.get(request);
    if (protocol !== undefined && headers.host !== undefined && url.startsWith("/")) {
      request.url = `${protocol}://${headers.host}${url}`;
    }
    return listener(request, response);
  };
}
