import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { bearer, fileTokenStore, oauth } from "@tenon/client/auth";
import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import {
  changeTokens,
  clientOf,
  closeAfterEach,
  codeOf,
  folder,
  freePort,
  ordersServer,
  person,
  readTokens,
  refund,
  startAuthServer,
  startOrders,
  whoami,
} from "./sign-in-scene.ts";
import { authServer, tenon } from "./tenon.ts";

// After the first sign-in: tokens that end, programs that are started again, servers that are not the one a token is for.

closeAfterEach();

const other = await program("../../client/test/auth-process.ts", import.meta.url);

/** Another program with the same file of tokens, where nobody can be asked. */
async function anotherProcess(url: string, path: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [other, url, path], { stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].on("data", (part) => {
      output[name] += part;
    });
  }
  const [code] = await once(child, "close");
  return { code, ...output };
}

/** A person who has signed in, and whose tokens are in a file. */
async function signedIn(given: Parameters<typeof startOrders>[0] = {}) {
  const orders = await startOrders(given);
  const path = join(folder(), "tokens.json");
  const alice = person();
  /** The program, started again: it knows what is in the file, and nothing else. */
  const start = () => clientOf(orders.url, oauth({ store: fileTokenStore(path), onAuthorize: alice.onAuthorize }));
  const client = start();
  const who = await whoami(client);
  expect([alice.asked.length, alice.failures]).toEqual([1, []]);
  return { ...orders, path, alice, start, client, who };
}

describe("a token that ends", () => {
  it("is renewed without the person, for the same server and the same rights", async () => {
    const { url, client, alice, who } = await signedIn({ authServer: ["--expires", "2"] });
    await expect.poll(() => Date.now() / 1000 > who.claims.exp, { timeout: 10_000, interval: 100 }).toBe(true);
    const later = await whoami(client);
    expect(later.claims.jti).not.toBe(who.claims.jti);
    expect(later).toMatchObject({ subject: "alice", clientId: who.clientId, scopes: who.scopes, claims: { aud: url } });
    expect(alice.asked).toHaveLength(1);
  });

  it("is renewed when the server finds that it has ended, whatever the client thinks", async () => {
    const cwd = folder();
    const { url, issuer, path, start, alice, who } = await signedIn({ cwd, jwt: { clockSkewMs: 0 } });
    const ended = await expiredToken(cwd, issuer, url);
    changeTokens(path, () => ({ accessToken: ended }));
    const { claims } = await whoami(start());
    expect([decodeJwt(ended).jti, who.claims.jti]).not.toContain(claims.jti);
    expect(alice.asked).toHaveLength(1);
  });

  it("is asked for anew when the right to renew it was taken back", async () => {
    const { issuer, path, start, alice, who } = await signedIn();
    const { refreshToken = "" } = readTokens(path);
    const revocation = new URLSearchParams({ token: refreshToken, client_id: who.clientId });
    expect((await fetch(`${issuer}/revoke`, { method: "POST", body: revocation })).status).toBe(200);
    changeTokens(path, () => ({ expiresAt: 1, renewAt: 1 }));
    expect(await whoami(start())).toMatchObject({ subject: "alice", clientId: who.clientId });
    expect(alice.asked).toHaveLength(2);
    expect(readTokens(path).refreshToken).not.toBe(refreshToken);
  });

  it("leads to one new sign-in when the authorization server has forgotten everything", async () => {
    const cwd = folder();
    const { url, issuer, authServer: running, path, start, alice, who } = await signedIn({ cwd });
    await running.stop();
    const again = await authServer(["--resource", url, "--port", new URL(issuer).port, "--scope", "orders:read"], {
      cwd,
    });
    try {
      expect(again.issuer).toBe(issuer);
      // its key is the same, so what is left of the token's life is not lost
      expect((await whoami(start())).claims.jti).toBe(who.claims.jti);
      changeTokens(path, () => ({ expiresAt: 1, renewAt: 1 }));
      const anew = await whoami(start());
      expect(anew.subject).toBe("alice");
      expect(anew.clientId).not.toBe(who.clientId);
      expect([alice.asked.length, alice.failures]).toEqual([2, []]);
    } finally {
      await again.stop();
    }
  });
});

describe("a program that is started again", () => {
  it("goes on with the tokens of its file, and renews them, where nobody can be asked", async () => {
    const { url, path, client, alice } = await signedIn();
    const before = readTokens(path);
    const first = await anotherProcess(url, path);
    expect(first, first.stderr).toMatchObject({ code: 0, stdout: "1 tool\n" });
    expect(readTokens(path)).toEqual(before);
    changeTokens(path, () => ({ expiresAt: 1, renewAt: 1 }));
    const second = await anotherProcess(url, path);
    expect(second, second.stderr).toMatchObject({ code: 0, stdout: "1 tool\n" });
    const after = readTokens(path);
    expect(after.accessToken).not.toBe(before.accessToken);
    expect(after.refreshToken).not.toBe(before.refreshToken);
    // the program that is still running has not lost anything by it
    expect(await refund(client)).toBe("refunded");
    expect(alice.asked).toHaveLength(2);
  });
});

describe("a token for one server", () => {
  it("is refused by another one, and each gets its own from one sign-in configuration", async () => {
    const [a, b] = [await freePort(), await freePort()].map((port) => ({ port, url: `http://127.0.0.1:${port}/mcp` }));
    if (!a || !b) throw new Error("there are two");
    const { issuer } = await startAuthServer([a.url, b.url]);
    for (const { port, url } of [a, b]) await ordersServer(issuer, url).server.listen({ port });
    const alice = person();
    const auth = oauth({ onAuthorize: alice.onAuthorize, store: fileTokenStore(join(folder(), "tokens.json")) });
    expect((await whoami(clientOf(a.url, auth))).claims.aud).toBe(a.url);
    let token = "";
    const spy = bearer(() => token);
    token = await tokenOf(auth, a.url);
    expect((await whoami(clientOf(a.url, spy))).claims.aud).toBe(a.url);
    expect(await codeOf(whoami(clientOf(b.url, spy)))).toBe("invalid_token");
    expect((await whoami(clientOf(b.url, auth))).claims.aud).toBe(b.url);
    expect(alice.asked).toHaveLength(2);
  });
});

/** What `auth` sends to a server. */
async function tokenOf(auth: ReturnType<typeof oauth>, url: string): Promise<string> {
  const target = { server: "orders", config: { url }, signal: new AbortController().signal };
  const credential = await auth.open(target).credential();
  return credential?.token ?? "";
}

/** A token of this issuer, by `tenon token` with the same key, that is over. */
async function expiredToken(cwd: string, issuer: string, audience: string): Promise<string> {
  const args = ["--subject", "alice", "--audience", audience, "--issuer", issuer, "--scope", "orders:read"];
  const { stdout } = await tenon(["token", ...args, "--expires", "1"], { cwd });
  const token = stdout.trim();
  const { exp = 0 } = decodeJwt(token);
  await expect.poll(() => Date.now() / 1000 > exp, { timeout: 10_000, interval: 100 }).toBe(true);
  return token;
}
