import type { ServerConfig } from "../types/servers.ts";

/**
 * An address for messages: what may be a credential in it, a user name, a password or a query, is left out.
 *
 * @example shownAddress("https://me:secret@a.example/mcp?key=1") // "https://a.example/mcp?…"
 */
export function shownAddress(address: string | URL): string {
  const { origin, pathname, search } = new URL(address);
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}

/** How a server is called in messages. */
export function placeOf(config: ServerConfig): string {
  if ("url" in config) return shownAddress(config.url);
  if ("command" in config) return [config.command, ...(config.args ?? [])].join(" ");
  return "its own transport";
}
