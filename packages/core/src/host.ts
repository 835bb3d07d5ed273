/**
 * Whether a host is this machine: `localhost` and the names below it, 127.0.0.0/8, ::1 (Secure Contexts, section 3.1).
 * @param host a name or an address without a port, for example the `hostname` of a `URL`
 */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  return name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}
