import { describe, expect, it } from "vitest";
import { plainAddress } from "./remote-address.ts";
import { compileTrustedProxies } from "./trusted-proxies.ts";

describe("trusted proxies", () => {
  it.each([
    ["10.0.0.7", ["10.0.0.7"], ["10.0.0.8", "::1"]],
    ["10.0.0.0/8", ["10.255.1.1"], ["11.0.0.1"]],
    ["2001:db8::/32", ["2001:db8:1::1"], ["2001:db9::1", "32.1.13.184"]],
    ["::ffff:10.0.0.7", ["10.0.0.7"], ["10.0.0.8"]],
    ["loopback", ["127.0.0.1", "127.9.9.9", "::1"], ["128.0.0.1", "::2"]],
    ["linklocal", ["169.254.1.1", "fe80::1"], ["169.255.1.1", "fec0::1"]],
    ["uniquelocal", ["10.1.1.1", "172.31.0.1", "192.168.1.1", "fd00::1"], ["172.32.0.1", "192.169.0.1", "fe80::1"]],
  ])("%s is who is meant, and nobody else", (entry, inside, outside) => {
    const trusted = compileTrustedProxies([entry]);
    expect(inside.filter((address) => !trusted.has(address))).toEqual([]);
    expect(outside.filter((address) => trusted.has(address))).toEqual([]);
    expect(trusted.unix).toBe(false);
  });
  it("unix is whoever uses the socket, and no address", () => {
    const trusted = compileTrustedProxies(["unix"]);
    expect(trusted.unix).toBe(true);
    expect(trusted.has("127.0.0.1")).toBe(false);
  });
  it.each([
    ["loopbak", 'did you mean "loopback"?'],
    ["nginx", "is no address"],
    ["10.0.0.0/8/9", "is no address"],
    ["10.0.0.0/33", "has no prefix from 1 to 32"],
    ["10.0.0.0/x", "has no prefix"],
    ["10.0.0.0/", "has no prefix"],
    ["::/129", "has no prefix from 1 to 128"],
    ["::ffff:10.0.0.0/104", "write it as IPv4"],
    ["0.0.0.0/0", "would trust everybody"],
    ["::/0", "would trust everybody"],
    ["", "is no address"],
  ])("%j is refused with what to do", (entry, why) => {
    expect(() => compileTrustedProxies(["loopback", entry])).toThrow(
      expect.objectContaining({ code: "trusted_proxies", message: expect.stringContaining(why), data: { entry } }),
    );
  });
});

describe("an address", () => {
  it.each([
    ["10.0.0.7", "10.0.0.7"],
    ["::ffff:10.0.0.7", "10.0.0.7"],
    ["::FFFF:a00:7", "10.0.0.7"],
    ["2001:DB8:0:0::1", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["010.0.0.7", undefined],
    ["10.0.0.7 ", undefined],
    ["localhost", undefined],
    [undefined, undefined],
  ])("%s has one spelling: %s", (given, plain) => expect(plainAddress(given)).toBe(plain));
});
