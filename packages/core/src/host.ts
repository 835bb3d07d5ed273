/**
 * Whether a host is this machine: `localhost` and the names below it, 127.0.0.0/8, ::1 (Secure Contexts, section 3.1).
 * @param host a name or an address without a port, for example the `hostname` of a `URL`
 */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  return name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** A host as an address has it: IPv6 stands in brackets (RFC 3986 section 3.2.2). */
export function urlHost(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** `URL.parse`, which not every Node 20 has: the address, or null where it is none. */
export function parseUrl(text: string, base?: string): URL | null {
  return URL.canParse(text, base) ? new URL(text, base) : null;
}
