import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { oauth } from "@tenon/client/auth";
import { describe, expect, it } from "vitest";
import type { Choice } from "./browser.ts";
import {
  clientOf,
  closeAfterEach,
  closing,
  codeOf,
  openFront,
  ordersServer,
  person,
  refund,
  startAuthServer,
  startOrders,
  whoami,
} from "./sign-in-scene.ts";

// The parts together: `tenon auth-server` as a process, a server that takes its tokens, a client that is told nothing but the
// server's address, and a person who fills in the pages.

closeAfterEach();

describe.each(["modern", "legacy"] as const)("a person who calls a tool of a protected server (%s)", (era) => {
  async function scene(choice?: () => Choice) {
    const front = await openFront(era);
    const { issuer } = await startAuthServer([front.url]);
    const { server, refunds } = ordersServer(issuer, front.url);
    front.lead((await server.listen({ port: 0 })).url);
    const alice = person(choice);
    const client = clientOf(front.url, oauth({ onAuthorize: alice.onAuthorize }));
    return { front, issuer, server, refunds, alice, client };
  }

  it("is led from the server's refusal to the sign-in, and back, and gets a token for this server only", async () => {
    const { front, issuer, alice, client } = await scene();
    const who = await whoami(client);
    expect(alice.failures).toEqual([]);
    expect(who).toMatchObject({ subject: "alice", claims: { iss: issuer, aud: front.url } });
    expect(who.scopes).toContain("orders:read");
    expect(who.scopes).not.toContain("orders:refund");
    const [first, second] = front.passed;
    expect([first?.method, first?.path, first?.status]).toEqual(["POST", "/mcp", 401]);
    expect(second?.path).toBe("/.well-known/oauth-protected-resource/mcp");
    expect(client.servers()).toMatchObject([{ health: "up", era }]);
    // and is not asked again
    expect((await whoami(client)).claims.jti).toBe(who.claims.jti);
    expect(alice.asked.map((scopes) => scopes.filter((one) => one.startsWith("orders:")))).toEqual([["orders:read"]]);
  });

  it("is asked for more only when a tool needs more, and the call then runs once", async () => {
    const { front, refunds, alice, client } = await scene();
    const before = await whoami(client);
    expect(await refund(client)).toBe("refunded");
    expect(refunds).toEqual(["alice"]);
    expect(alice.failures).toEqual([]);
    expect(front.passed.filter(({ status }) => status === 403)).toHaveLength(1);
    expect(alice.asked).toHaveLength(2);
    expect(alice.asked[1]).toEqual(expect.arrayContaining(["orders:read", "orders:refund"]));
    // what was given stays given, for the same person
    expect(await refund(client)).toBe("refunded");
    expect(await whoami(client)).toMatchObject({ subject: "alice", clientId: before.clientId });
    expect(alice.asked).toHaveLength(2);
    expect(refunds).toHaveLength(2);
    if (era === "legacy") {
      const sessions = front.passed.map(({ headers }) => headers["mcp-session-id"]).filter(Boolean);
      expect(new Set(sessions).size).toBe(1);
    }
  });

  it("may leave the new right unticked, and is not asked about it again and again", async () => {
    let ticked: string[] | undefined;
    const { refunds, alice, client } = await scene(() => (ticked ? { scope: ticked } : {}));
    await whoami(client);
    ticked = ["orders:read"];
    expect(await codeOf(refund(client))).toBe("insufficient_scope");
    expect(await codeOf(refund(client))).toBe("insufficient_scope");
    expect(alice.asked).toHaveLength(2);
    expect(refunds).toEqual([]);
    expect(await whoami(client)).toMatchObject({ subject: "alice" });
  });
});

describe("a scope that includes others", () => {
  it("opens what it includes without a second sign-in", async () => {
    const { url, refunds } = await startOrders();
    const lead = person(() => ({ user: "lead" }));
    const client = clientOf(url, oauth({ onAuthorize: lead.onAuthorize, scopes: ["orders:admin"] }));
    expect((await whoami(client)).scopes).toEqual(
      expect.arrayContaining(["orders:admin", "orders:refund", "orders:read"]),
    );
    expect(await refund(client)).toBe("refunded");
    expect(refunds).toEqual(["lead"]);
    expect(lead.asked).toHaveLength(1);
  });
});

describe("a client is known to the authorization server", () => {
  /** A client's metadata document, as a program under development serves it. */
  async function documentServer(): Promise<string> {
    const http = createHttpServer((_, response) => {
      const document = {
        client_id: address,
        client_name: "Editor",
        redirect_uris: ["http://127.0.0.1/callback"],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "none",
      };
      response.setHeader("content-type", "application/json").end(JSON.stringify(document));
    }).listen(0, "127.0.0.1");
    await once(http, "listening");
    const address = `http://127.0.0.1:${(http.address() as AddressInfo).port}/client.json`;
    closing({
      close: () => {
        http.close();
        http.closeAllConnections();
      },
    });
    return address;
  }

  it("because it registered itself", async () => {
    const { url } = await startOrders();
    const alice = person();
    const client = clientOf(url, oauth({ onAuthorize: alice.onAuthorize, clientName: "Notebook" }));
    expect((await whoami(client)).clientId).toMatch(/^[\w-]{10,}$/);
    expect(alice.failures).toEqual([]);
  });
  it("by a document that describes it", async () => {
    const { url } = await startOrders({ authServer: ["--no-registration"] });
    const clientMetadataUrl = await documentServer();
    const alice = person();
    const client = clientOf(url, oauth({ onAuthorize: alice.onAuthorize, clientMetadataUrl }));
    expect((await whoami(client)).clientId).toBe(clientMetadataUrl);
    expect(alice.failures).toEqual([]);
  });
  it("because somebody told it before", async () => {
    const callback = "http://127.0.0.1/callback";
    const { url } = await startOrders({ authServer: ["--no-registration", "--client", `desk=${callback}`] });
    const alice = person();
    const client = clientOf(url, oauth({ onAuthorize: alice.onAuthorize, client: { clientId: "desk" } }));
    expect((await whoami(client)).clientId).toBe("desk");
  });
  it("or is told what to do when it is not", async () => {
    const { url } = await startOrders({ authServer: ["--no-registration"] });
    const alice = person();
    const client = clientOf(url, oauth({ onAuthorize: alice.onAuthorize }));
    await expect(whoami(client)).rejects.toMatchObject({
      code: "registration_failed",
      message: expect.stringContaining("client: { clientId }"),
    });
    expect(alice.asked).toEqual([]);
  });
});
