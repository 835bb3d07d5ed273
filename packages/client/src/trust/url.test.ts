import { describe, expect, it } from "vitest";
import { checkQuestionUrl } from "./url.ts";

describe("the address of a url question", () => {
  it.each([
    "https://pay.example.com/x?y=1#z",
    "http://localhost:3000/callback",
    "http://127.0.0.1/",
    "http://127.9.9.9/",
    "http://[::1]:8080/",
    "http://app.localhost/",
  ])("may be %s", (url) => expect(checkQuestionUrl(url, "s", undefined).url).toBe(url));
  it.each([
    ["http://example.com/", "not encrypted"],
    ["http://127.0.0.1.example.com/", "not encrypted"],
    ["http://localhost.example.com/", "not encrypted"],
    ["https://user:pw@example.com/", "password"],
    ["https://apple.com@evil.example/", "user name"],
    ["javascript:alert(1)", "not a web page"],
    ["file:///etc/passwd", "not a web page"],
    ["data:text/html,x", "not a web page"],
    ["vscode://x/y", "not a web page"],
    ["ftp://example.com/", "not a web page"],
    ["example.com", "no address"],
    [`https://example.com/${"x".repeat(5_000)}`, "longer"],
  ])("may not be %s", (url, why) => {
    expect(() => checkQuestionUrl(url, "s", undefined)).toThrow(
      expect.objectContaining({ name: "TrustError", code: "unsafe_url", message: expect.stringContaining(why) }),
    );
  });
  it("is handed on in the one form a browser reads, whatever tricks it was written with", () => {
    expect(checkQuestionUrl("HTTPS:\\\\Good.example\\@evil.example", "s", undefined).url).toBe(
      "https://good.example/@evil.example",
    );
    expect(checkQuestionUrl("https://ex\u00adample.com/\u202egnp", "s", undefined).url).toBe(
      "https://example.com/%E2%80%AEgnp",
    );
  });
  it.each([
    ["https://example.com:8443/", "example.com:8443", "example.com:8443", false],
    ["https://xn--mnchen-3ya.example/", "münchen.example", "xn--mnchen-3ya.example", false],
    ["https://p\u0430ypal.com/", "p\u0430ypal.com", "xn--pypal-4ve.com", true],
    ["https://例子.测试/", "例子.测试", "xn--fsqu00a.xn--0zwm56d", false],
    ["https://東京toweR.example/", "東京tower.example", "xn--tower-w91hq39l.example", false],
    ["https://пример.example/", "пример.example", "xn--e1afmkfd.example", false],
  ])("%s shows its host decoded, and marked when it mixes scripts", (url, display, punycode, mixedScripts) => {
    expect(checkQuestionUrl(url, "s", undefined).host).toEqual({ display, punycode, mixedScripts });
  });
  it.each([
    ["https://pay.example.com/", ["pay.example.com"], true],
    ["https://pay.example.com:8443/", ["pay.example.com"], true],
    ["https://pay.example.com:8443/", ["pay.example.com:443"], false],
    ["https://a.b.example.com/", ["*.example.com"], true],
    ["https://example.com/", ["*.example.com"], false],
    ["https://notexample.com/", ["*.example.com", "example.com"], false],
    ["https://example.com.evil.example/", ["example.com"], false],
    ["https://münchen.example/", ["münchen.example"], true],
    ["https://example.com/", [], false],
  ])("%s under expectHosts %j: %s", (url, hosts, allowed) => {
    const check = () => checkQuestionUrl(url, "s", hosts);
    if (allowed) expect(check).not.toThrow();
    else expect(check).toThrow(expect.objectContaining({ code: "unexpected_host" }));
  });
});
