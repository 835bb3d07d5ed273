import type { EndpointConfig } from "../types/servers.ts";

/**
 * An address for messages: what may be a credential in it, a user name, a password or a query, is left out.
 *
 * @example shownAddress("https://me:secret@a.example/mcp?key=1") // "https://a.example/mcp?…"
 */
export function shownAddress(address: string | URL): string {
  const { origin, pathname, search } = new URL(address);
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}

const SECRET_FLAG = /^--?[\w-]*(key|token|secret|password|passwd|credential|auth)[\w-]*(=|$)/i;

/** A command's arguments for messages: what follows a flag that names a secret is left out. */
function shownArguments(args: readonly string[]): string[] {
  return args.map((arg, index) => {
    const before = args[index - 1];
    if (before !== undefined && SECRET_FLAG.test(before) && !before.includes("=") && !arg.startsWith("-")) return "…";
    return SECRET_FLAG.test(arg) && arg.includes("=") ? `${arg.slice(0, arg.indexOf("="))}=…` : arg;
  });
}

/** How a server is called in messages. */
export function placeOf(config: EndpointConfig): string {
  if ("url" in config) return shownAddress(config.url);
  if ("command" in config) return [config.command, ...shownArguments(config.args ?? [])].join(" ");
  return "its own transport";
}
