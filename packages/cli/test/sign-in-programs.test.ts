import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clientCredentials, oauth } from "@tenon/client/auth";
import { describe, expect, it } from "vitest";
import { FIRST, SECOND } from "../../server/test/certificates.ts";
import {
  clientOf,
  closeAfterEach,
  codeOf,
  folder,
  freePort,
  ordersServer,
  person,
  refund,
  startOrders,
  whoami,
} from "./sign-in-scene.ts";
import { tenon } from "./tenon.ts";

closeAfterEach();

describe("a program that signs in for itself", () => {
  const secret = "a-long-secret-of-nightly";

  it("proves itself with a secret, and gets more rights when a tool needs them", async () => {
    const { url, refunds } = await startOrders({ authServer: ["--client", `nightly:${secret}`] });
    const client = clientOf(url, clientCredentials({ clientId: "nightly", clientSecret: secret }));
    const who = await whoami(client);
    expect(who).toMatchObject({ subject: "nightly", clientId: "nightly", scopes: ["orders:read"] });
    expect(who.claims.aud).toBe(url);
    expect(await refund(client)).toBe("refunded");
    expect(refunds).toEqual(["nightly"]);
    expect((await whoami(client)).scopes).toContain("orders:refund");
  });
  it("is told when its secret is wrong, without the secret", async () => {
    const { url, issuer } = await startOrders({ authServer: ["--client", `nightly:${secret}`] });
    const client = clientOf(url, clientCredentials({ clientId: "nightly", clientSecret: "guessed-secret", issuer }));
    await expect(whoami(client)).rejects.toMatchObject({
      code: "token_request_failed",
      data: { error: "invalid_client" },
      message: expect.not.stringContaining("guessed-secret"),
    });
  });
  it.each(["ES256", "RS256", "EdDSA"])(
    "proves itself with a key of tenon keys new (%s), of which nothing is sent",
    async (alg) => {
      const cwd = folder();
      expect((await tenon(["keys", "new", "--out", "nightly.pem", "--alg", alg], { cwd })).code).toBe(0);
      const nightly = {
        client_id: "nightly",
        grant_types: ["client_credentials"],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: "private_key_jwt",
        jwks: JSON.parse(readFileSync(join(cwd, "nightly.jwks.json"), "utf8")),
      };
      writeFileSync(join(cwd, "clients.json"), JSON.stringify(nightly));
      const { url } = await startOrders({ cwd, authServer: ["--client", "clients.json"] });
      const privateKey = readFileSync(join(cwd, "nightly.pem"), "utf8");
      const client = clientOf(url, clientCredentials({ clientId: "nightly", privateKey, algorithm: alg }));
      expect(await whoami(client)).toMatchObject({ subject: "nightly", scopes: ["orders:read"] });
      const other = folder();
      await tenon(["keys", "new", "--out", "forged.pem", "--alg", alg], { cwd: other });
      const forged = readFileSync(join(other, "forged.pem"), "utf8");
      const thief = clientOf(url, clientCredentials({ clientId: "nightly", privateKey: forged, algorithm: alg }));
      expect(await codeOf(whoami(thief))).toBe("token_request_failed");
    },
  );
});

describe("a developer in an empty directory", () => {
  it("makes a key, signs a token, and calls a server that checks it, as the documentation shows", async () => {
    const cwd = folder();
    const made = await tenon(["keys", "new"], { cwd });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    const [, shown = ""] = /^Sign a token: +tenon (.+)$/m.exec(made.stdout) ?? [];
    const args = shown.replace("http://127.0.0.1:8000/mcp", url).split(" ");
    const token = (await tenon([...args, "--scope", "orders:read"], { cwd })).stdout.trim();
    const [, issuer = ""] = /^Check it: +jwt\(\{ issuer: "([^"]+)"/m.exec(made.stdout) ?? [];
    const publicKeys = [
      readFileSync(join(cwd, ".tenon/signing-key.public.pem"), "utf8"),
      JSON.parse((await tenon(["keys", "show"], { cwd })).stdout),
    ];
    for (const publicKey of publicKeys) {
      const { server } = ordersServer(issuer, url, { publicKey });
      await server.listen({ port });
      const { status, body } = await curl(url, token);
      expect([status, JSON.parse(body.result.content[0].text)]).toMatchObject([200, { subject: "alice" }]);
      await server.close();
    }
  });
});

/** The request that curl sends in the documentation. */
async function curl(url: string, token: string) {
  const page = readFileSync(new URL("../../../docs/development-identity.md", import.meta.url), "utf8");
  const [, command = ""] = /^(curl [\s\S]+?)\n```/m.exec(page) ?? [];
  const headers = [...command.matchAll(/-H "([^:"]+): ([^$"]+)"/g)].map(([, name = "", value = ""]) => [name, value]);
  const [, data = ""] = /-d '([^']+)'/.exec(command) ?? [];
  expect(headers).toHaveLength(2);
  const response = await fetch(url, {
    method: "POST",
    headers: { ...Object.fromEntries(headers), authorization: `Bearer ${token}` },
    body: data,
  });
  const body = (await response.json()) as { result: { content: [{ text: string }] } };
  return { status: response.status, body };
}

describe("a server with a certificate", () => {
  it("is signed in to, and its certificate renewed, without anybody noticing", async () => {
    const path = folder();
    const [certFile, keyFile] = [join(path, "tls.crt"), join(path, "tls.key")];
    const write = ({ cert, key }: typeof FIRST): void => {
      writeFileSync(keyFile, key);
      writeFileSync(certFile, cert);
    };
    write(FIRST);
    const { url, refunds } = await startOrders({ listen: { tls: { certFile, keyFile } } });
    expect(url).toMatch(/^https:/);
    const alice = person();
    const auth = oauth({ onAuthorize: alice.onAuthorize });
    const client = clientOf(url, auth, { ca: [FIRST.cert, SECOND.cert] });
    expect(await whoami(client)).toMatchObject({ subject: "alice", claims: { aud: url } });
    write(SECOND);
    // who trusts only the new one is let in once it is there: discovery, metadata and call all go over it
    const trusting = { ca: [SECOND.cert] };
    await expect
      .poll(() => codeOf(whoami(clientOf(url, auth, trusting))), { timeout: 18_000, interval: 250 })
      .toBe("no error");
    expect(alice.asked).toHaveLength(1);
    const renewed = clientOf(url, auth, trusting);
    expect(await refund(renewed)).toBe("refunded");
    expect(await refund(client)).toBe("refunded");
    expect([alice.asked.length, alice.failures, refunds]).toEqual([2, [], ["alice", "alice"]]);
  }, 60_000);
});
