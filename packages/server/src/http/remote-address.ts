import type { IncomingMessage } from "node:http";
import { isIP, SocketAddress } from "node:net";

/** A request in either of its forms. */
type Carried = Request | Pick<IncomingMessage, "socket">;

/** What is known of requests besides their socket; a protocol layer in between has no place for it. */
const noted = new WeakMap<Carried, string | undefined>();

/**
 * An address in its one spelling, so that equal callers are equal texts: IPv4 inside IPv6 as IPv4, IPv6 shortened, without a
 * zone. Undefined for what is no address.
 */
export function plainAddress(text: string | undefined): string | undefined {
  if (text === undefined || isIP(text) === 0) return undefined;
  if (isIP(text) === 4) return text;
  const { address } = new SocketAddress({ address: text.replace(/%.*$/, ""), family: "ipv6" });
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address;
}

/** Notes where a request came from, for {@link remoteAddressOf}. @param address undefined: nobody knows */
export function noteRemoteAddress(request: Carried, address: string | undefined): void {
  noted.set(request, address);
}

/** Where a request came from, past trusted proxies; undefined over a unix socket, unless a proxy there says it. */
export function remoteAddressOf(request: Carried | undefined): string | undefined {
  if (!request || noted.has(request)) return request && noted.get(request);
  return "socket" in request ? plainAddress(request.socket.remoteAddress) : undefined;
}
