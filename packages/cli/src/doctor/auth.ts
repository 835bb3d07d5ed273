import { type Challenge, readChallenge, shownAddress } from "@tenon/client/internal";
import { isRecord } from "@tenon/core";
import type { Wire } from "./channel.ts";
import { type Answer, send } from "./http.ts";
import { parseJson, textOf } from "./json.ts";

type Answered = Answer & { kind: "answer" };

const METADATA_MS = 800;

/** The resource's metadata (RFC 9728), from where the challenge says it is, else from the well-known places. */
async function metadataOf(
  { visit, route }: Wire,
  url: URL,
  { resourceMetadataUrl }: Challenge,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const known = ["/.well-known/oauth-protected-resource", `/.well-known/oauth-protected-resource${url.pathname}`];
  const places = resourceMetadataUrl ? [resourceMetadataUrl] : known.map((path) => new URL(path, url));
  const found = await Promise.all(
    places
      .filter(({ protocol }) => /^https?:$/.test(protocol))
      .map(async (place) => {
        // without any credential: it is public, and may be somewhere else
        const answer = await send(visit, route, { method: "GET", url: place, headers: {}, ms: METADATA_MS });
        if (answer.kind !== "answer" || answer.status !== 200) return undefined;
        const value = parseJson(answer.text);
        return isRecord(value) && Array.isArray(value.authorization_servers) ? value : undefined;
      }),
  );
  return found.find((one) => one !== undefined);
}

/** What a token says about itself, unverified; a token need not say anything. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const claims = parseJson(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  return isRecord(claims) ? claims : {};
}

/** What is wrong with the token that was sent. */
function explainToken(
  { visit }: Wire,
  token: string,
  url: URL,
  said: string,
  metadata: Readonly<Record<string, unknown>> = {},
): never {
  const { exp, aud } = claimsOf(token);
  if (typeof exp === "number" && exp * 1_000 < Date.now()) {
    const ended = new Date(exp * 1_000).toISOString();
    return visit.fail("auth_token_expired", { evidence: `HTTP 401${said}; the token says it ended at ${ended}` });
  }
  const audiences = [aud].flat().filter((one): one is string => typeof one === "string");
  const wanted = typeof metadata.resource === "string" ? metadata.resource : shownAddress(url);
  const slash = (text: string) => text.replace(/\/$/, "");
  const foreign = audiences.length > 0 && !audiences.some((one) => slash(one) === slash(wanted));
  if (foreign || /audience/i.test(said)) {
    const fits = `it is for ${audiences.join(", ") || "?"}; the server is ${wanted}`;
    return visit.fail("auth_wrong_audience", {
      evidence: `HTTP 401${said}; ${fits}`,
      fix: `get a token whose audience is ${wanted}`,
    });
  }
  return visit.fail("auth_token_refused", { evidence: `HTTP 401${said}` });
}

/** Why a server answered 401 or 403. @throws Diagnosis always */
export async function explainRefusal(wire: Wire, { status, headers, url, text }: Answered): Promise<never> {
  const { visit, token } = wire;
  const challenge = readChallenge(headers["www-authenticate"] ?? null);
  const { error, description, scope } = challenge;
  const said = error === undefined ? "" : ` ${error}${description === undefined ? "" : ` (${description})`}`;
  if (status === 403) {
    if (error === "insufficient_scope" || scope !== undefined) {
      const wants = scope === undefined ? "" : `; it wants ${scope}`;
      return visit.fail("auth_scope", {
        evidence: `HTTP 403${said}${wants}`,
        ...(scope !== undefined && { fix: `get a token with the scope ${scope}` }),
      });
    }
    const words = text.trim() === "" || /^\s*</.test(text) ? "" : `: ${text.trim().slice(0, 120)}`;
    return visit.fail("auth_forbidden", { evidence: `HTTP 403${said}${words}` });
  }
  const metadata = await metadataOf(wire, url, challenge);
  if (token !== undefined) return explainToken(wire, token, url, said, metadata);
  if (!metadata) {
    const why = challenge.resourceMetadataUrl ? "its metadata cannot be read" : "no resource_metadata";
    return visit.fail("auth_no_metadata", { evidence: `HTTP 401${said}, ${why}` });
  }
  const [issuer] = Array.isArray(metadata.authorization_servers) ? metadata.authorization_servers : [];
  return visit.fail("auth_required", { evidence: `HTTP 401${said}; tokens come from ${textOf(issuer ?? "?")}` });
}
