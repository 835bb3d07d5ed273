import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ContractDeclaration, readDeclaration } from "./declaration.ts";
import { newContractKey, plainSecretKey, publicContractKey, readContractKeys, writeContractKeys } from "./keys.ts";
import { createKeyRing } from "./signature.ts";

const declaration = {
  version: "0.4.2",
  server_id: "orders",
  capabilities: ["tools.execute"],
  context_schema: { type: "object", properties: { user_id: { type: "string" } }, required: ["user_id"] },
} as const satisfies Omit<ContractDeclaration, "capabilities"> & { capabilities: readonly string[] };

describe("the signature of a contract", () => {
  it.each(["HS256", "EdDSA"] as const)("is right as it came and wrong once anything was changed (%s)", (alg) => {
    const key = newContractKey({ kid: "a", alg });
    const signed = readDeclaration(JSON.parse(JSON.stringify(createKeyRing([key]).sign(declaration))));
    const client = createKeyRing([publicContractKey(key)]);
    expect(client.faultOf(signed)).toBeUndefined();
    expect(client.faultOf({ ...signed, capabilities: ["tools.execute", "resources.read"] })).toBe("invalid");
    expect(client.faultOf({ ...signed, authentication: { type: "none" } })).toBe("invalid");
    expect(client.faultOf({ ...signed, next_rotation_time: "2099-01-01T00:00:00.000Z" })).toBe("invalid");
    const { signature: _, ...unsigned } = signed;
    expect(client.faultOf(unsigned)).toBe("unsigned");
    expect(client.faultOf(signed, Date.parse(String(signed.next_rotation_time)) + 3_600_000)).toBe("expired");
  });

  it("is the next key's from its time on", () => {
    const at = Date.parse("2026-12-01T00:00:00Z");
    const keys = [
      newContractKey({ kid: "now", alg: "HS256" }),
      newContractKey({ kid: "next", alg: "HS256", activeFrom: "2026-12-01T00:00:00Z" }),
    ];
    const ring = createKeyRing(readContractKeys(writeContractKeys(keys)));
    expect(ring.sign(declaration, at - 1)).toMatchObject({
      signature: { kid: "now" },
      next_rotation_time: "2026-12-01T00:00:00.000Z",
    });
    expect(ring.sign(declaration, at).signature?.kid).toBe("next");
    expect(ring.nextRotation(at) - at).toBe(30 * 24 * 3_600_000);
  });

  it("never says a part of a key that is wrong", () => {
    expect(() => readContractKeys("a:HS256:c2VjcmV0LW9mLW91cnM")).toThrow(/32 are the least/);
    expect(() => readContractKeys("a:HS256:c2VjcmV0LW9mLW91cnM")).not.toThrow(/c2VjcmV0/);
  });
});

describe("the ring of keys", () => {
  const day = 24 * 3_600_000;
  const at = Date.parse("2026-12-01T00:00:00Z");
  const from = (ms: number): string => new Date(at + ms).toISOString();

  it.each([
    ["one that was always there, from when it was first used", [undefined], 0, "k0", 30 * day],
    ["the same a year later", [undefined], 365 * day, "k0", 390 * day],
    ["the newest of two that are active", [undefined, -day], 0, "k1", 29 * day],
    ["the newest, whatever order they stand in", [-day, undefined], 0, "k0", 29 * day],
    ["the old one until the last millisecond", [undefined, day], day - 1, "k0", day],
    ["the new one from its millisecond on", [undefined, day], day, "k1", 31 * day],
    ["the newer one of two with a time", [-40 * day, -10 * day], 0, "k1", 20 * day],
  ] as const)("signs with %s", (_, times, now, kid, rotates) => {
    const keys = times.map((time, i) =>
      newContractKey({ kid: `k${i}`, alg: "HS256", ...(time !== undefined && { activeFrom: from(time) }) }),
    );
    const signed = createKeyRing(keys, at).sign(declaration, at + now);
    expect(signed.signature?.kid).toBe(kid);
    expect(Date.parse(String(signed.next_rotation_time))).toBe(at + rotates);
  });

  it("believes both keys at any time, and a declaration five minutes past its end", () => {
    const keys = [
      newContractKey({ kid: "now", alg: "EdDSA" }),
      newContractKey({ kid: "next", alg: "HS256", activeFrom: from(0) }),
    ];
    const client = createKeyRing(keys.map(publicContractKey), at);
    const server = createKeyRing(keys, at);
    const [old, young] = [server.sign(declaration, at - day), server.sign(declaration, at)];
    for (const now of [at - day, at, at + 5 * 60_000]) {
      expect(client.faultOf(old, now)).toBeUndefined();
      expect(client.faultOf(young, now)).toBeUndefined();
    }
    expect(client.faultOf(old, at + 5 * 60_000 + 1)).toBe("expired");
  });

  it("believes nothing that was changed, whatever was changed to what", () => {
    const ring = createKeyRing([newContractKey({ kid: "k", alg: "HS256" })]);
    const signed = ring.sign({ ...declaration, authentication: { type: "bearer" } });
    const { signature: _, ...covered } = signed;
    const fields = Object.keys(covered) as (keyof typeof covered)[];
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
        fc.pre(JSON.stringify(covered[field]) !== JSON.stringify(value));
        expect(ring.faultOf({ ...signed, [field]: value } as never)).toBe("invalid");
      }),
    );
    fc.assert(
      fc.property(fc.string(), (value) => {
        fc.pre(Buffer.from(value, "base64url").toString("base64url") !== signed.signature?.value);
        expect(ring.faultOf({ ...signed, signature: { alg: "HS256", kid: "k", value } })).toBe("invalid");
      }),
    );
  });

  it("believes nothing that has no canonical form: half a surrogate pair", () => {
    const ring = createKeyRing([newContractKey({ kid: "k", alg: "HS256" })]);
    const signed = ring.sign(declaration);
    expect(ring.faultOf({ ...signed, server_id: "\ud800" })).toBe("invalid");
    expect(ring.faultOf({ ...signed, context_schema: { title: "\udfff" } })).toBe("invalid");
  });

  it("signs with a plain secret of any length only where that is asked for", () => {
    const key = plainSecretKey("short");
    expect(() => createKeyRing([key])).toThrow("32 are the least");
    expect(createKeyRing([key], at, 1).sign(declaration, at).signature?.kid).toBe("default");
    expect(() => plainSecretKey("")).toThrow("the plain secret is empty");
  });

  it("makes a code over any bytes with a shared secret, and with no other key", () => {
    const secret = Buffer.alloc(32, 7);
    const shared = createKeyRing([{ kid: "k", alg: "HS256", secret: secret.toString("base64url") }]);
    const bytes = Buffer.from("bytes");
    expect(shared.mac(bytes)).toEqual(createHmac("sha256", secret).update(bytes).digest());
    expect(createKeyRing([newContractKey({ kid: "k", alg: "EdDSA" })]).mac(bytes)).toBeUndefined();
  });

  it("says that a public key cannot sign", () => {
    const ring = createKeyRing([publicContractKey(newContractKey({ kid: "k", alg: "EdDSA" }))]);
    expect(() => ring.sign(declaration)).toThrow('"k" is a public key');
  });
});

describe("keys as one line of text", () => {
  const good = newContractKey({ kid: "a", alg: "HS256" });
  it("come back as they were", () => {
    const kid = fc.stringMatching(/^[\w.-]{1,64}$/);
    const key = fc.record({
      kid,
      alg: fc.constantFrom("HS256" as const, "EdDSA" as const),
      from: fc.option(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date("2099-01-01") })),
      half: fc.boolean(),
    });
    const made = key.map(({ from, half, ...rest }) => {
      const whole = newContractKey({ ...rest, ...(from && { activeFrom: from.toISOString() }) });
      return half ? publicContractKey(whole) : whole;
    });
    fc.assert(
      fc.property(fc.uniqueArray(made, { minLength: 1, maxLength: 2, selector: (one) => one.kid }), (keys) => {
        expect(readContractKeys(` ${writeContractKeys(keys).replace(",", " , ")} `)).toEqual(keys);
      }),
      { numRuns: 30 },
    );
  });
  it.each([
    ["", "there is none"],
    [`${writeContractKeys([good])},${writeContractKeys([good])}`, "both have the same kid"],
    ["a:HS256:", "not base64url"],
    ["a:HS256:!!!!", "not base64url"],
    ["a b:HS256:QUFB", "1 to 64 letters"],
    ["a:HS512:QUFB", "unknown algorithm"],
    ["a:EdDSA:QUFB", "3 bytes instead of 32"],
    [`${writeContractKeys([good])}@yesterday`, "no time as ISO 8601"],
    [`${writeContractKeys([good])}@2026-01-01@2026-01-02`, "too many parts"],
    [`${writeContractKeys([good])}:more`, "too many parts"],
    [["a", "b", "c"].map((kid) => writeContractKeys([newContractKey({ kid, alg: "HS256" })])).join(), "there are 3"],
  ])("are refused as %j, without a word of a key", (text, words) => {
    let message = "";
    try {
      readContractKeys(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toContain(words);
    for (const secret of text.match(/[\w-]{40,}/g) ?? []) expect(message).not.toContain(secret);
  });
});

describe("a declaration as it arrives", () => {
  const nested = (levels: number): object => (levels === 0 ? {} : { not: nested(levels - 1) });
  const whole = { ...declaration, authentication: { type: "none" }, signature: { alg: "HS256", kid: "k", value: "v" } };
  it.each([
    ["nothing", undefined, "dev.tenon/context"],
    ["a list", [], "dev.tenon/context"],
    ["no version", { ...whole, version: 4 }, "version"],
    ["an empty id", { ...whole, server_id: "" }, "server_id"],
    ["capabilities that are no texts", { ...whole, capabilities: [1] }, "capabilities"],
    ["too many capabilities", { ...whole, capabilities: Array(257).fill("a") }, "capabilities"],
    ["no schema", { ...whole, context_schema: true }, "context_schema"],
    ["a schema without an end", { ...whole, context_schema: nested(5_000) }, "context_schema"],
    ["a schema that is very large", { ...whole, context_schema: { title: "x".repeat(300_000) } }, "dev.tenon/context"],
    ["a text for how to sign in", { ...whole, authentication: "jwt" }, "authentication"],
    ["another algorithm", { ...whole, signature: { ...whole.signature, alg: "none" } }, "signature.alg"],
    ["a signature that is a text", { ...whole, signature: "sha256-hmac:00" }, "signature"],
    ["a time that is none", { ...whole, next_rotation_time: "soon" }, "next_rotation_time"],
  ])("is refused with %s, naming the field", (_, value, field) => {
    expect(() => readDeclaration(value)).toThrow(
      expect.objectContaining({ code: "malformed_contract", data: { field } }),
    );
  });
  it("loses what it does not know", () => {
    expect(readDeclaration({ ...whole, more: 1 })).not.toHaveProperty("more");
  });
});
