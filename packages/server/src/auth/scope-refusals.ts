import { isRecord } from "@tenon/core";
import type { Viewer } from "../definition/access.ts";
import type { Service } from "../dispatch/dispatch.ts";
import { readEnvelope } from "../fast/envelope.ts";
import type { Caller } from "../handler/context.ts";
import { findInsufficient } from "../http/scope-check.ts";
import { withoutCredentials } from "./bearer.ts";
import { challenge, challengedScopes } from "./challenge.ts";

/** Answers requests whose token lacks scopes for what they ask. */
export type ScopeRefusals = (
  about: Pick<Viewer, "era" | "headers"> & {
    readonly caller: Caller;
    /** One message or a batch. */
    readonly body: unknown;
    /** Where the server's metadata is; undefined without a token check of its own. */
    readonly metadataUrl: () => string | undefined;
  },
) => Response | undefined;

function* requestsOf(body: unknown): Generator<{ id: unknown; method: string; params: Record<string, unknown> }> {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  for (const message of messages) {
    if (!isRecord(message) || typeof message.method !== "string") continue;
    yield { id: message.id, method: message.method, params: isRecord(message.params) ? message.params : {} };
  }
}

/** The sender of a message as rules about visibility see it, before the protocol layer has looked at the message. */
export function viewerOf(of: {
  readonly caller: Caller | undefined;
  readonly era: Viewer["era"];
  readonly headers: Headers | undefined;
  readonly authenticated: boolean;
  readonly body: unknown;
  readonly params: Record<string, unknown>;
}): Viewer {
  const { caller, era, headers, authenticated, body, params } = of;
  const meta = isRecord(params._meta) ? params._meta : {};
  return {
    caller,
    era,
    client: readEnvelope(meta, body)?.client ?? { capabilities: {} },
    meta,
    // made when a rule about visibility looks
    get headers() {
      return headers && authenticated ? withoutCredentials(headers) : headers;
    },
  };
}

/**
 * The answer is 403 with a challenge that names all scopes the request needs (2026-07-28, scope challenge handling), and the
 * protocol's error for clients that read only bodies.
 * @param always scopes that every request needs
 * @param known scopes this server uses: of the others a caller has, a challenge says nothing
 */
export function createScopeRefusals(
  { registry, log, authenticated }: Pick<Service, "registry" | "log" | "authenticated">,
  always: readonly string[],
  known: () => ReadonlySet<string>,
): ScopeRefusals {
  return ({ caller, era, headers, body, metadataUrl }) => {
    for (const { id, method, params } of requestsOf(body)) {
      const found = findInsufficient(
        registry,
        method,
        params,
        viewerOf({ caller, era, headers, authenticated, body, params }),
      );
      if (!found) continue;
      const { code, message, data } = found.error;
      log("info", "request refused: insufficient_scope", { caller: caller.subject, method, scopes: found.needed });
      const scopes = challengedScopes([...found.needed, ...always], caller.scopes, known());
      const header = challenge({
        error: "insufficient_scope",
        description: message,
        scopes,
        metadataUrl: metadataUrl(),
      });
      return Response.json(
        { jsonrpc: "2.0", id: id ?? null, error: { code, message, data } },
        { status: 403, headers: { "www-authenticate": header, "cache-control": "no-store" } },
      );
    }
    return undefined;
  };
}
