import { BlockList, isIP } from "node:net";
import { isLoopback } from "@tenon/core";

/** Where an address leads: to this machine, a network of one's own, the link (cloud metadata among it), or the internet. */
export type Reach = "loopback" | "private" | "link" | "public";

function blocks(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

// IANA's special-purpose registries; what embeds an IPv4 address (NAT64, 6to4, Teredo) counts as private
const LOOPBACK = blocks("127.0.0.0/8", "::1/128");
const LINK = blocks("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32");
const PRIVATE = blocks(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/128",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/32",
  "2001:db8::/32",
  "2002::/16",
  "fc00::/7",
  "fec0::/10",
  "ff00::/8",
);

/** Where an IP address leads; an IPv4 address inside an IPv6 one is looked at as itself. */
export function reachOf(address: string): Reach {
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (LINK.check(address, family)) return "link";
  if (LOOPBACK.check(address, family)) return "loopback";
  return PRIVATE.check(address, family) ? "private" : "public";
}

/** Where a host of an address leads, if the name alone says so. */
export function reachOfHost(hostname: string): Reach | undefined {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host)) return reachOf(host);
  return isLoopback(host) ? "loopback" : undefined;
}
