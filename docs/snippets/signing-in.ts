import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stubHttp } from "../../packages/client/test/stub/http.ts";
import { protectedBy, startIssuer } from "../../packages/client/test/stub/issuer.ts";

// an authorization server, and a server that wants its tokens
const issuer = await startIssuer();
const { url, close } = await stubHttp({ onHttp: protectedBy(() => issuer) });
const folder = mkdtempSync(join(tmpdir(), "tenon-docs-"));
const path = join(folder, "tokens.json");
// a person with a browser, who consents at once
const showPage = async (page: string) => void issuer.browse(page).then((back) => fetch(back));

// #region first
import { createClient } from "@tenon/client";
import { fileTokenStore, oauth } from "@tenon/client/auth";

const client = createClient({
  servers: {
    mail: {
      url,
      auth: oauth({
        store: fileTokenStore(path), // left out: in memory
        onAuthorize: ({ url }) => showPage(url), // left out: opens the browser
      }),
    },
  },
});

const tools = await client.listTools(); // asks a person to sign in, once
// #endregion
assert.equal(tools.length, 1);
assert.equal(issuer.authorizations.length, 1);
await client.close();

// #region callback
const waiting = new Map<string, (back: string) => void>(); // by state

const consoleAuth = oauth({
  redirectUrl: "https://console.example.com/oauth/callback",
  onAuthorize: ({ url, server, signal }) =>
    new Promise<string>((resolve, reject) => {
      const state = new URL(url).searchParams.get("state") ?? "";
      waiting.set(state, resolve);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      tellPerson(`${server} wants you to sign in`, url);
    }),
});

/** The console's own route: hands on the address that the browser came back to. */
function onCallback(requestUrl: string): void {
  const state = new URL(requestUrl).searchParams.get("state") ?? "";
  waiting.get(state)?.(requestUrl);
  waiting.delete(state);
}
// #endregion
async function tellPerson(_text: string, page: string): Promise<void> {
  onCallback((await issuer.browse(page)).href);
}
const web = createClient({ servers: { mail: { url, auth: consoleAuth } } });
assert.equal((await web.listTools()).length, 1);
await web.close();

const secret = "example";
const session = { accessToken: [...issuer.tokens.keys()][0] ?? "" };

// #region programs
import { bearer, clientCredentials } from "@tenon/client/auth";

const program = createClient({
  servers: {
    nightly: { url, auth: clientCredentials({ clientId: "nightly", clientSecret: secret, issuer: issuer.url }) },
    shared: { url, auth: bearer(() => session.accessToken) }, // asked before every request
  },
});
// #endregion
assert.equal((await program.listTools()).length, 2);
await program.close();

// #region errors
const quiet = createClient({ servers: { mail: { url, auth: oauth({ onAuthorize: false }), required: true } } });
const error = await quiet.listTools().catch((thrown: { code: string; message: string }) => thrown);
assert.equal("code" in error && error.code, "auth_required");
// #endregion
await quiet.close();
await close();
await issuer.close();
rmSync(folder, { recursive: true });
