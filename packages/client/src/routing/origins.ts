import { isLoopback } from "@tenon/core";
import { parseUrl } from "@tenon/core/internal";
import { reachOfHost } from "../auth/addresses.ts";

/** An origin, or a family of them: `*.` for any host below a name, `:*` for any port. */
interface OriginPattern {
  readonly protocol: string;
  readonly host: string;
  /** Any host below `host` counts, `host` itself does not. */
  readonly below: boolean;
  /** Undefined: any. */
  readonly port: string | undefined;
}

const PATTERN = /^(https?):\/\/(\*\.)?(\[[0-9a-f:.]+\]|[^\s/?#@:*[\]]+)(?::(\d{1,5}|\*))?\/?$/i;

/** Reads a pattern; undefined where it is none. */
export function parseOrigin(text: string): OriginPattern | undefined {
  const [, scheme = "", wild, host = "", port] = PATTERN.exec(text) ?? [];
  const protocol = `${scheme.toLowerCase()}:`;
  // the form that addresses have: lower case, Punycode, no default port
  const url = parseUrl(`${protocol}//${host}${port === undefined || port === "*" ? "" : `:${port}`}`);
  if (scheme === "" || !url) return undefined;
  return { protocol, host: url.hostname, below: wild !== undefined, port: port === "*" ? undefined : url.port };
}

function covers(pattern: OriginPattern, url: URL): boolean {
  if (url.protocol !== pattern.protocol) return false;
  if (pattern.port !== undefined && url.port !== pattern.port) return false;
  return pattern.below ? url.hostname.endsWith(`.${pattern.host}`) : url.hostname === pattern.host;
}

/** What a server with replicas lets its addresses be. */
export interface AddressRules {
  /** Undefined: any. */
  readonly origins: readonly string[] | undefined;
  /** Whether tokens are sent there. */
  readonly auth: boolean;
}

/**
 * Why an address that a registry names is not used; undefined when it is. Tokens go over https or to this machine only, and addresses of the
 * link, where cloud providers keep credentials, are nobody's replica unless the configuration says so.
 */
export function addressFault(address: string, { origins, auth }: AddressRules): string | undefined {
  const url = parseUrl(address);
  if (!url || !["http:", "https:"].includes(url.protocol)) return "it is no http or https address";
  if (url.username !== "" || url.password !== "") return "it holds credentials";
  if (auth && url.protocol === "http:" && !isLoopback(url.hostname)) return "a token would be sent there unencrypted";
  const allowed = origins?.some((text) => {
    const pattern = parseOrigin(text);
    return pattern !== undefined && covers(pattern, url);
  });
  if (allowed === false) return "its origin is not among the server's origins";
  if (allowed === undefined && reachOfHost(url.hostname) === "link") return "it is an address of the link";
  return undefined;
}
