import { ExecutionError } from "@tenon/core";
import { redactor } from "@tenon/core/internal";
import { describe, expect, it } from "vitest";
import { clientOf, shop } from "../../test/shop.ts";
import { type Interceptor, renderText } from "../index.ts";
import { redact } from "./redact.ts";

describe("redactor", () => {
  const clean = redactor({ patterns: ["bearer", "jwt", "email", "phone", "card", /ORD-\d+/] });

  it("takes values out by the names of their fields, at any depth and in any spelling", () => {
    expect(clean({ a: [{ API_KEY: "x", "set-cookie": 1, token: { deep: 1 }, tokens: 5 }], password: null })).toEqual({
      a: [{ API_KEY: "[redacted]", "set-cookie": "[redacted]", token: "[redacted]", tokens: 5 }],
      password: null,
    });
  });

  it("looks into JSON text, also inside JSON text, and keeps it JSON", () => {
    const inner = JSON.stringify({ password: "hunter2", ok: 1 });
    const found = JSON.parse(clean(JSON.stringify({ inner, list: ["a"] })));
    expect(JSON.parse(found.inner)).toEqual({ password: "[redacted]", ok: 1 });
    expect(clean('{ "a" : 1 }')).toBe('{ "a" : 1 }');
  });

  it("finds key and value in other text", () => {
    expect(clean("url?api_key=abc&x=1")).toBe("url?api_key=[redacted]&x=1");
    expect(clean('Got {"password": "hun\\"ter2", "n": 1} from it')).toBe(
      'Got {"password": "[redacted]", "n": 1} from it',
    );
    expect(clean("the secretary=5 knows a basic understanding")).toBe("the secretary=5 knows a basic understanding");
  });

  it("finds shapes", () => {
    expect(clean("Bearer abc123def456")).toBe("[redacted]");
    expect(clean("eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl")).toBe("[redacted]");
    expect(clean("write to ann.lee@example.co.uk or 张三@例子.中国, call 18812345678 or 555-123-4567")).toBe(
      "write to [redacted] or [redacted], call [redacted] or [redacted]",
    );
    expect(clean("card 4111 1111 1111 1111, order ORD-001")).toBe("card [redacted], order [redacted]");
  });

  it("finds the password in an address unless it is told to look for something else", () => {
    const told = redactor();
    expect(told("connect postgres://app:p@ss:w0rd@db.internal:5432/shop failed")).toBe(
      "connect postgres://[redacted]@db.internal:5432/shop failed",
    );
    expect(told("see redis://:hunter2@cache, mail:a:b@c and https://example.com:8443/a:b@c")).toBe(
      "see redis://[redacted]@cache, mail:a:b@c and https://example.com:8443/a:b@c",
    );
    expect(told("a://".repeat(50_000))).toHaveLength(200_000);
    expect(told(`x://${"a:".repeat(100_000)}`)).toHaveLength(200_004);
  });

  it("changes nothing in place, and returns what is clean as it is", () => {
    const given = Object.freeze({ a: Object.freeze({ password: "x" }), b: { c: 1 } });
    const cleaned = clean(given);
    expect(given.a.password).toBe("x");
    expect(cleaned.b).toBe(given.b);
    const fine = { a: ["b"], when: new Date(0) };
    expect(clean(fine)).toBe(fine);
  });

  it("ends on anything: depth, length, cycles of JSON text", () => {
    let deep: unknown = { password: "x" };
    for (let i = 0; i < 5_000; i++) deep = [deep];
    expect(JSON.stringify(clean(deep))).not.toContain('"x"');
    const long = `${"a.".repeat(200_000)}@ ${"password=".repeat(20_000)}`;
    expect(clean(long)).toContain("[redacted]");
  });

  it("refuses rules it does not know", () => {
    expect(() => redactor({ patterns: ["mail" as never] })).toThrow(/one of email, phone/);
    expect(() => redactor({ keyz: [] } as object)).toThrow('did you mean "keys"');
  });
});

describe("redact", () => {
  const answer = {
    content: [
      { type: "text", text: '{"password":"p1"}' },
      { type: "image", mimeType: "image/png", data: "4111111111111111" },
      { type: "resource", resource: { uri: "a://b", text: "secret=s1" } },
    ],
    structuredContent: { token: "t1", ok: true },
    _meta: { apiKey: "k1" },
  };

  it("cleans what is sent and all of what comes back, pictures untouched", async () => {
    const server = await shop({ t: { work: () => answer } });
    const client = clientOf(server.url, { interceptors: [redact({ patterns: ["card"] })] });
    const args = { q: { password: "p0" }, id: "A" };
    const result = await client.callTool("s", "t", args);
    expect(server.got).toEqual([{ q: { password: "[redacted]" }, id: "A" }]);
    expect(args.q.password).toBe("p0");
    expect(result).toMatchObject({ isError: false, structured: { token: "[redacted]", ok: true } });
    expect(JSON.stringify(result)).not.toMatch(/p1|s1|t1|k1/);
    expect(JSON.stringify(result)).toContain('"4111111111111111"');
    expect(renderText(result.content)).toContain('{"password":"[redacted]"}');
  });

  it("cleans one direction only where it is told so", async () => {
    const server = await shop({ t: { work: (_, args) => JSON.stringify(args) } });
    const results = clientOf(server.url, { interceptors: [redact({ in: ["results"] })] });
    expect(renderText((await results.callTool("s", "t", { token: "a" })).content)).toBe('{"token":"[redacted]"}');
    expect(server.got).toEqual([{ token: "a" }]);
    const args = clientOf(server.url, { interceptors: [redact({ in: ["arguments"], replacement: "*" })] });
    expect(renderText((await args.callTool("s", "t", { token: "a" })).content)).toBe('{"token":"*"}');
    expect(() => redact({ in: ["text" as never] })).toThrow('"arguments" and "results"');
  });

  it("cleans errors, keeping class and code", async () => {
    const thrown = new ExecutionError("password=p1 is wrong", { code: "own", data: { secret: "s1" }, cause: "p1" });
    const fail: Interceptor = () => Promise.reject(thrown);
    const client = clientOf("http://127.0.0.1:9", { interceptors: [redact(), fail] });
    const error = await client.callTool("s", "t").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error).toMatchObject({ code: "own", message: "password=[redacted] is wrong" });
    expect((error as Error).cause).toBeUndefined();
    expect(error).toMatchObject({ data: { secret: "[redacted]" } });
  });
});
