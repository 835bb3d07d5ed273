import { describe, expect, it } from "vitest";
import { addressFault } from "./origins.ts";

const ALL = [
  "https://kb.example/mcp",
  "https://a.kb.example/mcp",
  "https://b.a.kb.example/mcp",
  "https://kb.example:8443/mcp",
  "http://kb.example/mcp",
  "http://10.0.0.1/mcp",
  "http://10.0.0.1:23412/mcp",
  "https://10.0.0.1/mcp",
  "https://kb.example.evil/mcp",
  "https://evilkb.example/mcp",
  "http://[fd00::7]:8000/mcp",
];

describe("the addresses that origins allow", () => {
  it.each([
    ["https://kb.example", ["https://kb.example/mcp"]],
    ["https://KB.example:443/", ["https://kb.example/mcp"]],
    ["https://*.kb.example", ["https://a.kb.example/mcp", "https://b.a.kb.example/mcp"]],
    ["https://kb.example:*", ["https://kb.example/mcp", "https://kb.example:8443/mcp"]],
    ["http://10.0.0.1:*", ["http://10.0.0.1/mcp", "http://10.0.0.1:23412/mcp"]],
    ["http://[fd00:0::7]:8000", ["http://[fd00::7]:8000/mcp"]],
  ])("of %s are %j", (origin, good) => {
    const rules = { origins: [origin], auth: false };
    expect(ALL.filter((url) => addressFault(url, rules) === undefined)).toEqual(good);
  });

  it("are all without origins, but no address of the link, and no credentials in one", () => {
    const rules = { origins: undefined, auth: false };
    expect(ALL.filter((url) => addressFault(url, rules) !== undefined)).toEqual([]);
    expect(addressFault("http://169.254.169.254/mcp", rules)).toBe("it is an address of the link");
    expect(addressFault("https://me:pw@kb.example/mcp", rules)).toBe("it holds credentials");
    expect(
      addressFault("http://169.254.169.254/mcp", { origins: ["http://169.254.169.254"], auth: false }),
    ).toBeUndefined();
  });

  it("are encrypted, or on this machine, where tokens go", () => {
    const rules = { origins: ["http://10.0.0.1", "http://127.0.0.1:*", "https://kb.example"], auth: true };
    expect(addressFault("http://10.0.0.1/mcp", rules)).toBe("a token would be sent there unencrypted");
    expect(addressFault("http://127.0.0.1:9/mcp", rules)).toBeUndefined();
    expect(addressFault("https://kb.example/mcp", rules)).toBeUndefined();
  });
});
