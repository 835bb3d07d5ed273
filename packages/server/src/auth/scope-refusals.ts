import { isRecord } from "@tenon/core";
import type { Viewer } from "../definition/access.ts";
import type { Service } from "../dispatch/dispatch.ts";
import { readEnvelope } from "../fast/envelope.ts";
import type { Caller } from "../handler/context.ts";
import { findInsufficient } from "../http/scope-check.ts";
import { shownHeaders } from "./bearer.ts";
import { challenge, challengedScopes } from "./challenge.ts";

/** Answers requests whose token lacks scopes. */
export interface ScopeRefusals {
  /** The refusal where a scope is lacking for what messages ask; undefined when all is well. */
  of(
    about: Pick<Viewer, "era" | "headers"> & {
      readonly caller: Caller;
      /** One message or a batch. */
      readonly body: unknown;
      readonly metadataUrl: MetadataUrl;
    },
  ): Response | undefined;
  /** The refusal of what another token of the same caller asked for, with more scopes: not of this one's business. */
  narrower(caller: Caller | undefined, needed: readonly string[], metadataUrl: MetadataUrl): Response;
}

/** Where the server's metadata is; undefined without a token check of its own. */
type MetadataUrl = () => string | undefined;

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
      return shownHeaders(headers, { authenticated, caller });
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
  service: Pick<Service, "registry" | "extensions" | "log" | "authenticated">,
  always: readonly string[],
  known: () => ReadonlySet<string>,
): ScopeRefusals {
  const { log, authenticated } = service;
  const refuse = (
    error: { code: number; message: string; data?: unknown },
    about: { id: unknown; granted: readonly string[]; needed: readonly string[]; metadataUrl: MetadataUrl },
  ): Response => {
    const { id, granted, needed, metadataUrl } = about;
    const header = challenge({
      error: "insufficient_scope",
      description: error.message,
      scopes: challengedScopes([...needed, ...always], granted, known()),
      metadataUrl: metadataUrl(),
    });
    return Response.json(
      { jsonrpc: "2.0", id: id ?? null, error },
      { status: 403, headers: { "www-authenticate": header, "cache-control": "no-store" } },
    );
  };
  return {
    of({ caller, era, headers, body, metadataUrl }) {
      for (const { id, method, params } of requestsOf(body)) {
        const viewer = viewerOf({ caller, era, headers, authenticated, body, params });
        const found = findInsufficient(service, method, params, viewer);
        if (!found) continue;
        const { needed } = found;
        const { code, message, data } = found.error;
        log("info", "request refused: insufficient_scope", { caller: caller.subject, method, scopes: needed });
        return refuse({ code, message, data }, { id, granted: caller.scopes, needed, metadataUrl });
      }
      return undefined;
    },
    narrower(caller, needed, metadataUrl) {
      // of scopes that are another server's, a challenge says nothing
      const named = needed.filter((scope) => known().has(scope));
      log("info", "request refused: made with a wider token", { caller: caller?.subject, scopes: named });
      const message =
        "This belongs to requests that were made with a token of more scopes; use one that has them, or open another session";
      const data = { reason: "insufficient_scope", scopes: named };
      const granted = caller?.scopes ?? [];
      return refuse({ code: -32602, message, data }, { id: null, granted, needed: named, metadataUrl });
    },
  };
}
