import { describe, expect, it } from "vitest";
import { codeOf, scene } from "./oauth-scene.ts";
import { closeAfterEach } from "./stub/index.ts";

closeAfterEach();

describe("scopes", () => {
  it("are what the challenge says, then what the server supports, and offline access where it is offered", async () => {
    const supported = { resource: (all: object) => ({ ...all, scopes_supported: ["read", "write"] }) };
    const on = await scene({
      server: supported,
      issuer: { metadata: (all) => ({ ...all, scopes_supported: ["offline_access"] }) },
    });
    await on.client.listTools();
    expect(on.issuer.authorizations).toMatchObject([{ scope: "read write offline_access", prompt: "consent" }]);
    const other = await scene({ server: { ...supported, challenge: 'scope="read"' } });
    await other.client.listTools();
    expect(other.issuer.authorizations).toMatchObject([{ scope: "read" }]);
    const none = await scene();
    await none.client.listTools();
    expect(none.issuer.authorizations[0]).not.toHaveProperty("scope");
  });

  it("that a call lacks are asked for together with those there are", async () => {
    const needs = (method: string) => (method === "tools/call" ? "write" : "read");
    const on = await scene({ server: { needs }, oauth: { scopes: ["read"] } });
    await on.client.listTools();
    await on.client.callTool("s", "t");
    expect(on.issuer.authorizations.map(({ scope }) => scope)).toEqual(["read", "read write"]);
    expect(on.server.count("server/discover")).toBe(1);
  });

  it("that nobody gives end the call, and nobody is asked a second time", async () => {
    const needs = (method: string) => (method === "tools/call" ? "admin" : undefined);
    const on = await scene({ server: { needs }, issuer: { grants: () => "read" }, oauth: { scopes: ["read"] } });
    await on.client.listTools();
    for (let n = 0; n < 3; n++) {
      await expect(on.client.callTool("s", "t")).rejects.toMatchObject({
        code: "insufficient_scope",
        data: { scopes: ["admin"] },
        message: expect.stringContaining("admin"),
      });
    }
    expect(on.shown).toHaveLength(2);
  });
  it("that were given and are refused all the same end the call", async () => {
    const on = await scene({ server: { challenge: 'scope="read"', needs: () => "read" } });
    const tokens = on.issuer.tokens;
    // the token says "read", and this server does not believe it
    tokens.get = (token) => (tokens.has(token) ? "" : undefined);
    expect(await codeOf(on.client.listTools())).toBe("insufficient_scope");
    expect(on.shown).toHaveLength(1);
  });
});
