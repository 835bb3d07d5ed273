import { BlockList, isIP } from "node:net";
import { ConfigError } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import { plainAddress } from "./remote-address.ts";

/** Names for ranges of addresses. */
const RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};
const UNIX = "unix";

/** Peers whose word about the caller counts. */
export interface TrustedProxies {
  /** Whoever connects to the unix socket: the rights of its file decide who that is. */
  readonly unix: boolean;
  /** @param address in the form of `plainAddress` */
  has(address: string): boolean;
}

const familyOf = (address: string): "ipv4" | "ipv6" => (isIP(address) === 4 ? "ipv4" : "ipv6");

function wrong(entry: string, why: string): never {
  throw new ConfigError(`http.trustedProxies: ${JSON.stringify(entry)} ${why}`, {
    code: "trusted_proxies",
    data: { entry },
  });
}

function addTo(list: BlockList, entry: string): void {
  const [text = "", bits, ...more] = entry.split("/");
  const address = plainAddress(text);
  if (address === undefined || more.length > 0) {
    const near = didYouMean(entry, [...Object.keys(RANGES), UNIX]);
    wrong(
      entry,
      `is no address; ${near ? `did you mean "${near}"?` : `use an address such as "10.0.0.7", a range such as "10.0.0.0/8", or loopback, linklocal, uniquelocal, unix`}`,
    );
  }
  const family = familyOf(address);
  const most = family === "ipv4" ? 32 : 128;
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (bits !== undefined && family !== familyOf(text)) wrong(entry, `is a range of IPv4 inside IPv6; write it as IPv4`);
  if (prefix === 0) wrong(entry, "would trust everybody; name the addresses of your proxies");
  if (!(prefix <= most)) wrong(entry, `has no prefix from 1 to ${most}`);
  list.addSubnet(address, prefix, family);
}

/**
 * Compiles the option `http.trustedProxies`: addresses, ranges, and the names `loopback`, `linklocal`, `uniquelocal`, `unix`.
 * @throws ConfigError `code: "trusted_proxies"` naming the entry
 */
export function compileTrustedProxies(entries: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const entry of entries) {
    if (entry === UNIX) continue;
    const range = Object.hasOwn(RANGES, entry) ? RANGES[entry] : undefined;
    for (const one of range ?? [entry]) addTo(list, one);
  }
  return {
    unix: entries.includes(UNIX),
    has: (address) => list.check(address, familyOf(address)),
  };
}
