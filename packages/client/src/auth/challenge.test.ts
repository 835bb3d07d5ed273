import { describe, expect, it } from "vitest";
import { readChallenge } from "./challenge.ts";

describe("what a challenge says of bearer tokens", () => {
  it.each<[string, object]>([
    ['Bearer error="invalid_token", scope="a b"', { error: "invalid_token", scope: "a b" }],
    ["bearer error=invalid_token,scope=a", { error: "invalid_token", scope: "a" }],
    ['DPoP  error = "use_dpop_nonce"', { error: "use_dpop_nonce" }],
    ['Basic realm="x", Bearer scope="a"', { scope: "a" }],
    ['Bearer scope="a", Basic scope="b"', { scope: "a" }],
    ['Bearer scope="a", Bearer scope="b"', { scope: "a" }],
    ['Bearer scope="a", scope="b"', { scope: "a" }],
    [
      'Bearer error="insufficient_scope", error_description="file:///x scope=admin, scope=\\"root\\" needs more", scope="read"',
      { error: "insufficient_scope", scope: "read", description: 'file:///x scope=admin, scope="root" needs more' },
    ],
    ["Bearer", {}],
    ["Basic scope=a", {}],
    ["", {}],
    ['Bearer scope="never closed', {}],
    ["Bearer resource_metadata=nowhere", {}],
  ])("is read part by part from %s", (header, said) => {
    expect(readChallenge(header)).toEqual(said);
  });
  it("is an address where there is one", () => {
    const { resourceMetadataUrl } = readChallenge("Bearer resource_metadata=https://host.example/.well-known/x?a=b");
    expect(resourceMetadataUrl?.href).toBe("https://host.example/.well-known/x?a=b");
    expect(readChallenge(null)).toEqual({});
  });
  it("is read at once, whatever its length and shape", () => {
    const start = performance.now();
    for (const part of ['"', "\\", " ", ",", "a", "a=", "a ", '\\"', '="'])
      readChallenge(`Bearer x="${part.repeat(60_000)}`);
    expect(performance.now() - start).toBeLessThan(5_000);
  });
});
