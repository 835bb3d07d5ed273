import { createHash } from "node:crypto";
import type { DiscoverResult } from "@modelcontextprotocol/client";
import { isRecord, keepNewest, type TenonError } from "@tenon/core";
import type { EndpointConfig } from "../types/servers.ts";

/** What is known about an endpoint before it is asked: which revision, or transport, it speaks. */
export type Verdict =
  | { readonly kind: "modern"; readonly discover: DiscoverResult }
  | { readonly kind: "legacy" }
  /** The first transport over HTTP, with one stream for all answers. */
  | { readonly kind: "sse" };

/** How long a verdict counts, in milliseconds; a server may be replaced by one of another revision. */
const KEEP_MS = 10 * 60_000;
const MAX_KEPT = 1_000;
/** A longer description is asked for each time. */
const MAX_DISCOVER = 64 * 1024;

const kept = new Map<string, { readonly verdict: Verdict; readonly until: number }>();

/** Statuses and JSON-RPC codes of a server that is not what it was taken for. */
const OTHER_STATUSES = new Set([400, 404, 405, 406, 415, 501]);
const OTHER_CODES = new Set([-32_600, -32_601, -32_022, -32_000]);

/** Whether an error shows that a server is not what it was taken for. */
export function contradicts({ data }: TenonError): boolean {
  if (!isRecord(data)) return false;
  const { status, code } = data;
  return (
    (typeof status === "number" && OTHER_STATUSES.has(status)) || (typeof code === "number" && OTHER_CODES.has(code))
  );
}

/** Whether a server that spoke the newer revision now asks for the handshake of the older one: it came back as another. */
export function wantsHandshake({ data, message }: TenonError): boolean {
  return isRecord(data) && (data.code === -32_000 || data.code === -32_600) && /session|not initialized/i.test(message);
}

/**
 * Names an endpoint together with the credentials it is used with, so that nothing learned with one is used with another.
 * A digest: no credential is kept. `principal` is who requests are made for, where the server's `auth` says so. Undefined for a transport of the caller's own.
 */
export function endpointOf(config: EndpointConfig, principal = ""): string | undefined {
  if ("transport" in config) return undefined;
  const parts =
    "url" in config
      ? [
          config.url,
          config.socketPath,
          principal,
          Object.entries(config.headers ?? {})
            .map(([name, value]) => [name.toLowerCase(), value])
            .sort(),
        ]
      : [config.command, config.args, config.cwd, Object.entries(config.env ?? {}).sort()];
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

/** What this process knows about an endpoint. */
export function recall(endpoint: string | undefined): Verdict | undefined {
  const entry = endpoint === undefined ? undefined : kept.get(endpoint);
  return entry && Date.now() < entry.until ? entry.verdict : undefined;
}

/** Keeps a verdict; a server's own description for no longer than it allows. */
export function remember(endpoint: string | undefined, verdict: Verdict): void {
  if (endpoint === undefined) return;
  const given = verdict.kind === "modern" ? verdict.discover.ttlMs : KEEP_MS;
  const ttlMs = typeof given === "number" ? given : 0;
  kept.delete(endpoint);
  if (verdict.kind === "modern" && JSON.stringify(verdict.discover).length > MAX_DISCOVER) return;
  if (ttlMs > 0) keepNewest(kept, endpoint, { verdict, until: Date.now() + Math.min(ttlMs, KEEP_MS) }, MAX_KEPT);
}

/** Forgets what did not prove true. */
export function forget(endpoint: string | undefined): void {
  if (endpoint !== undefined) kept.delete(endpoint);
}

/** Forgets all endpoints, as if the process had just begun: for tests, whose servers come and go on the same ports. */
export function forgetAll(): void {
  kept.clear();
}
