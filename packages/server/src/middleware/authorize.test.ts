import { describe, expect, it } from "vitest";
import { alice, ask, call, root, said } from "../../test/ask.ts";
import { createServer } from "../index.ts";
import { authorize } from "./authorize.ts";

describe("authorize", () => {
  const server = createServer({ name: "test", version: "1", logSink: () => undefined })
    .use(
      authorize(async ({ name, caller, method }) => {
        if (method.endsWith("/list") || name === "open") return true;
        return caller?.claims.role === "admin" || (caller ? "Only admins may do this" : false);
      }),
    )
    .tool("open", {}, () => "open")
    .tool("refund", {}, () => "refunded")
    .prompt("p", {}, () => "p");

  it("lets through what the rule allows", async () => {
    expect(said(await call(server, "open"))).toBe("open");
    expect(said(await call(server, "refund", {}, { caller: root }))).toBe("refunded");
    expect((await ask(server, "tools/list")).result?.tools).toHaveLength(2);
  });
  it.each(["modern", "legacy"] as const)("refuses the rest with a reason the caller reads (%s)", async (era) => {
    const named = await call(server, "refund", {}, { era, caller: alice });
    expect(named.result).toMatchObject({ isError: true, structuredContent: { code: "forbidden" } });
    expect(said(named)).toBe("Only admins may do this");
    expect(said(await call(server, "refund", {}, { era }))).toBe("Not allowed: tools/call of refund");
    expect((await ask(server, "prompts/get", { name: "p" }, { era })).error).toMatchObject({
      code: -32600,
      data: { code: "forbidden" },
    });
  });
});
