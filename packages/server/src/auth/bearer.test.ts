import { describe, expect, it } from "vitest";
import { authorizationOf, readBearer } from "./bearer.ts";

describe("a bearer token", () => {
  it.each(["Bearer abc.d-e_f~g+/==", "bearer abc", "BEARER   abc", "Bearer abc "])("is read from %j", (header) => {
    expect(readBearer(header, "/mcp")).toHaveProperty("token", header.trim().split(/ +/)[1]);
  });
  it.each([undefined, "", "Basic eA==", "Bearerabc", "DPoP abc"])("is missing in %j", (header) => {
    expect(readBearer(header, "/mcp")).toEqual({ missing: true });
  });
  it.each([
    "Bearer",
    "Bearer ",
    "Bearer a b",
    "Bearer a,b",
    "Bearer a, Bearer b",
    "Basic eA==, Bearer a",
    "Bearer ä",
    'Bearer "a"',
  ])("is malformed in %j", (header) => expect(readBearer(header, "/mcp")).toHaveProperty("malformed"));
  it("is never read from the address", () => {
    for (const address of ["/mcp?access_token=a", "/mcp?x=1&ACCESS_TOKEN=a", "https://h/mcp?access_token=a"]) {
      expect(readBearer("Bearer a", address)).toHaveProperty("malformed");
    }
    expect(readBearer("Bearer a", "/access_token=a?my_access_token=a")).toEqual({ token: "a" });
  });
  it("is not read beyond 16 KiB", () => {
    expect(readBearer(`Bearer ${"a".repeat(16 * 1024)}`, "/")).toHaveProperty("token");
    expect(readBearer(`Bearer ${"a".repeat(16 * 1024 + 20)}`, "/")).toHaveProperty("malformed");
  });
  it("is found in a request's headers however it is written, and as often as it is there", () => {
    expect(authorizationOf(["Host", "a", "AUTHORIZATION", "Bearer a"])).toBe("Bearer a");
    expect(authorizationOf(["authorization", "Bearer a", "x", "y", "Authorization", "Bearer b"])).toBe(
      "Bearer a, Bearer b",
    );
    expect(authorizationOf(["x-authorization", "Bearer a"])).toBeUndefined();
  });
});
