import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ToolCallRequest, ToolRuntime } from "@tenon/client";
import { jwt } from "@tenon/server/auth";
import { createSigningKey, publicJwks } from "@tenon/server/development";
import { describe, expect, it, onTestFinished } from "vitest";
import { AUDIENCES, ISSUER } from "../servers/access.ts";
import { textsFor } from "../texts/index.ts";
import type { DeskContext } from "./interceptors.ts";
import { explainRefusal, onlyFor } from "./refusals.ts";
import { givenTokens, tokensFor } from "./token-sources.ts";
import { claimsOf, mintedTokens, readTokenFile, userOf } from "./tokens.ts";

const MINUTE = 60_000;
const zhangsan: DeskContext = { userId: "user_zhangsan", userName: "张三" };
/** A token nobody signed, as others may write it. */
const unsigned = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;

describe("the desk's own tokens", () => {
  it("are of one user for one server, and short-lived", async () => {
    const key = await createSigningKey();
    const order = jwt({
      issuer: ISSUER,
      audience: AUDIENCES.order,
      publicKey: publicJwks(key).keys.map((one) => ({ ...one })),
    });
    const token = await mintedTokens(key, "order")("user_zhangsan");
    const { caller, expiresAt } = await order.verify(token, () => undefined);
    expect(caller).toMatchObject({ subject: "user_zhangsan", scopes: ["orders:read", "orders:refund"] });
    expect(expiresAt).toBeLessThan(Date.now() + 16 * MINUTE);
    const other = await mintedTokens(key, "notification")("user_zhangsan");
    await expect(order.verify(other, () => undefined)).rejects.toMatchObject({ data: { reason: "audience" } });
  });

  it("are used again by the same user only, and renewed long before they end", async () => {
    let now = Date.now();
    const tokens = mintedTokens(await createSigningKey(), "order", () => now);
    const first = await tokens("user_zhangsan");
    expect(await tokens("user_zhangsan")).toBe(first);
    const other = await tokens("user_lisi");
    expect(claimsOf(other).subject).toBe("user_lisi");
    expect(await tokens("user_zhangsan")).toBe(first);
    for (let passed = 0; passed < 60 * MINUTE; passed += MINUTE) {
      now += MINUTE;
      const left = (claimsOf(await tokens("user_zhangsan")).expiresAt ?? 0) - now;
      expect(left).toBeGreaterThan(9 * MINUTE);
    }
    expect(await tokens("user_zhangsan")).not.toBe(first);
  });

  it("of users nobody saw for long are forgotten", async () => {
    const tokens = mintedTokens(await createSigningKey(), "order");
    const first = await tokens("user_0");
    for (let i = 1; i <= 1_000; i++) void tokens(`user_${i}`);
    expect(await tokens("user_1000")).toBe(await tokens("user_1000"));
    expect(await tokens("user_0")).not.toBe(first);
  });
});

describe("a token somebody brought", () => {
  it("says who is in front of the desk", () => {
    const lisi = unsigned({ sub: "user_lisi", name: "李四", aud: ["a", "b"], exp: 1 });
    expect(claimsOf(lisi)).toEqual({ subject: "user_lisi", name: "李四", audience: "a b", expiresAt: 1_000 });
    expect(userOf([lisi, "opaque"], zhangsan)).toEqual({ userId: "user_lisi", userName: "李四" });
    expect(userOf([unsigned({ sub: "u1" })], zhangsan)).toEqual({ userId: "u1", userName: "u1" });
    expect(userOf([unsigned({ sub: "user_zhangsan" })], zhangsan)).toEqual(zhangsan);
    for (const opaque of ["", "opaque", "a.b.c", unsigned([1]), unsigned({ sub: 1 })])
      expect(userOf([opaque], zhangsan)).toEqual(zhangsan);
    expect(() => userOf([lisi, unsigned({ sub: "user_zhangsan" })], zhangsan)).toThrow(
      "The tokens are of different users, user_lisi and user_zhangsan",
    );
  });

  it("is read from its file whenever it is used, and stays out of errors", () => {
    const home = mkdtempSync(join(tmpdir(), "tenon-token-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const file = join(home, "token");
    expect(() => readTokenFile(file)).toThrow(/token file .*token cannot be used: ENOENT/);
    for (const token of ["one.two.three", "opaque=="]) {
      writeFileSync(file, `${token}\n`);
      expect(readTokenFile(file)).toBe(token);
    }
    for (const wrong of ["", "two secrets", "x".repeat(20_000), "秘密"]) {
      writeFileSync(file, wrong);
      expect(() => readTokenFile(file)).toThrow(/cannot be used: it (holds no token|is too large)$/);
    }
  });
});

describe("a server elsewhere", () => {
  const key = createSigningKey();
  const urls = { order: "https://orders.example/mcp", notification: "http://127.0.0.1:8031/mcp" };

  it("never gets a token of the desk's own, only one somebody brought for it", async () => {
    const sources = tokensFor(urls, {}, await key);
    expect(Object.keys(sources)).toEqual(["notification"]);
    for (const host of ["127.0.0.1.example", "localhost.example", "192.168.0.1", "127.example"]) {
      expect(tokensFor({ ...urls, order: `http://${host}/mcp` }, {}, await key)).not.toHaveProperty("order");
    }
    const given = givenTokens({}, { TENON_ORDER_TOKEN: " brought ", TENON_NOTIFICATION_TOKEN: "" });
    expect(await tokensFor(urls, given, await key).order?.("user_zhangsan")).toBe("brought");
  });

  it("that asks for one is named, with how to give it", () => {
    const facts = { code: "unauthorized", title: "order service", server: "order", claims: undefined } as const;
    expect(explainRefusal(facts, textsFor("en"))).toBe(
      "The order service needs a token: please give one in the environment variable TENON_ORDER_TOKEN.",
    );
  });
});

describe("a run of another person", () => {
  it("makes no call with the tokens of this one", async () => {
    const made: unknown[] = [];
    const call = async (context: DeskContext | undefined) =>
      onlyFor(zhangsan)(
        { server: "order", runtime: { context } } as ToolCallRequest<ToolRuntime<DeskContext>>, // all it reads
        async (request) => {
          made.push(request.runtime.context);
          return { content: [], isError: false, meta: {}, raw: { content: [] } };
        },
      );
    await call(zhangsan);
    for (const context of [{ userId: "user_lisi", userName: "张三" }, undefined]) {
      await expect(call(context)).rejects.toMatchObject({ code: "other_user" });
    }
    expect(made).toEqual([zhangsan]);
  });
});
