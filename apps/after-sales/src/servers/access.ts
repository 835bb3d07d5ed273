import { matchCaller } from "@tenon/server/middleware";
import { type Texts, textsFor } from "../texts/index.ts";
import type { ServerName } from "./names.ts";

/** Who issues the desk's own tokens. A name, no address: nobody can sign in there. */
export const ISSUER = "urn:tenon:after-sales:desk";

/** What a token for each server says it is for (`aud`): names that stay, whatever port a server listens on. */
export const AUDIENCES: Readonly<Record<ServerName, string>> = {
  order: "urn:tenon:after-sales:order",
  notification: "urn:tenon:after-sales:notification",
};

/** The scopes of each server. */
export const SCOPES = {
  order: ["orders:read", "orders:refund"],
  notification: ["policies:read", "messages:send"],
} as const satisfies Record<ServerName, readonly string[]>;

/** Who may refund may look up what is refunded. */
export const SCOPE_HIERARCHY = { "orders:refund": ["orders:read"] } as const;

/** The scope that each tool needs. */
export const TOOL_SCOPES = {
  order: { query_order: "orders:read", process_refund: "orders:refund", batch_refund: "orders:refund" },
  notification: { send_sms: "messages:send" },
} as const satisfies { [Name in ServerName]: Record<string, (typeof SCOPES)[Name][number]> };

/** `user_zhangsan(张三)`, as a client writes its caller → the subject of that person's tokens. */
function subjectOf(callerId: string): string {
  return callerId.replace(/\(.*\)$/s, "");
}

/** Refuses a `caller_id` that is not the token's: whoever has a token acts as its subject and as nobody else. */
export const ownCallerOnly = (own: Texts) =>
  matchCaller({
    argument: "caller_id",
    subjectOf,
    message: (value, { headers, caller }) => textsOf(headers, own).access.otherCaller(value, caller?.subject ?? ""),
  });

/** The language of a request, else the server's own. */
export function textsOf(headers: Headers | undefined, own: Texts): Texts {
  const tag = headers?.get("accept-language");
  return tag && tag !== "*" ? textsFor(tag) : own;
}
