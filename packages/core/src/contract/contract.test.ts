import { describe, expect, it } from "vitest";
import { contextFault } from "./context.ts";
import { type ContractDeclaration, readDeclaration } from "./declaration.ts";
import { newContractKey, publicContractKey, readContractKeys, writeContractKeys } from "./keys.ts";
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

describe("the context of a contract", () => {
  it.each([
    [{}, "missing_context_field", "user_id"],
    [{ user_id: "" }, "missing_context_field", "user_id"],
    [{ user_id: null }, "missing_context_field", "user_id"],
    [{ user_id: 7 }, "invalid_context_value", "user_id"],
    ["x", "invalid_context_value", "context"],
  ])("%j is %s of %s", (context, reason, field) => {
    expect(contextFault(declaration.context_schema as never, context)).toMatchObject({ reason, field });
  });
});
