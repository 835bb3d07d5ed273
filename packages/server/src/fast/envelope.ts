import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  classifyInboundRequest,
  LOG_LEVEL_META_KEY,
  type LoggingLevel,
  PROTOCOL_VERSION_META_KEY,
} from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { LOG_LEVELS } from "@tenon/core/internal";
import type { ClientDescription } from "../handler/context.ts";

/** The modern revision the fast path speaks. */
export const REVISION = "2026-07-28";

const RESERVED: ReadonlySet<string> = new Set([
  PROTOCOL_VERSION_META_KEY,
  CLIENT_INFO_META_KEY,
  CLIENT_CAPABILITIES_META_KEY,
  LOG_LEVEL_META_KEY,
]);

/** What a request's `_meta` says, split into the protocol's part and the rest. */
export interface Envelope {
  readonly client: ClientDescription;
  /** Least severe level the caller wants; undefined means it wants none. */
  readonly logLevel: LoggingLevel | undefined;
  /** `_meta` without the protocol's own keys. */
  readonly meta: Readonly<Record<string, unknown>>;
}

const isEmpty = (value: unknown): boolean => isRecord(value) && Object.keys(value).length === 0;

/** What each detail of a capability is at a glance, in what clients really send; an extension says of itself what it likes. */
const PLAIN: ReadonlyMap<string, (detail: unknown) => boolean> = new Map([
  ["elicitation", isEmpty],
  ["sampling", isEmpty],
  ["roots", isEmpty],
  ["extensions", isRecord],
]);

function plainCapabilities(value: Record<string, unknown>): boolean {
  for (const [name, capability] of Object.entries(value)) {
    const fits = PLAIN.get(name);
    if (!fits || !isRecord(capability)) return false;
    for (const detail of Object.values(capability)) if (!fits(detail)) return false;
  }
  return true;
}

function plainClientInfo(value: unknown): boolean {
  if (value === undefined) return true;
  return (
    isRecord(value) &&
    Object.values(value).every((part) => typeof part === "string") &&
    "name" in value &&
    "version" in value
  );
}

/** Whether a progress token has one of the two allowed forms. */
export function isToken(token: unknown): boolean {
  return token === undefined || typeof token === "string" || Number.isSafeInteger(token);
}

function wellFormed(meta: Record<string, unknown>, capabilities: Record<string, unknown>, body: unknown): boolean {
  if (!isToken(meta.progressToken)) return false;
  const level = meta[LOG_LEVEL_META_KEY];
  if (level !== undefined && !LOG_LEVELS.some((known) => known === level)) return false;
  if (plainCapabilities(capabilities) && plainClientInfo(meta[CLIENT_INFO_META_KEY])) return true;
  // unusual, maybe right: the protocol's own schema decides
  return classifyInboundRequest({ httpMethod: "POST", body }).kind === "modern";
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});

function unreserved(meta: Record<string, unknown>): Readonly<Record<string, unknown>> {
  let more = false;
  for (const key in meta) more ||= !RESERVED.has(key);
  return more ? Object.fromEntries(Object.entries(meta).filter(([key]) => !RESERVED.has(key))) : NOTHING;
}

/**
 * Reads the envelope of a modern request.
 * @param body the whole message, for the schema that decides unusual cases
 * @returns undefined when it is not certainly well formed
 */
export function readEnvelope(meta: Record<string, unknown>, body: unknown): Envelope | undefined {
  if (meta[PROTOCOL_VERSION_META_KEY] !== REVISION) return undefined;
  const capabilities = meta[CLIENT_CAPABILITIES_META_KEY];
  if (!isRecord(capabilities) || !wellFormed(meta, capabilities, body)) return undefined;
  const info = meta[CLIENT_INFO_META_KEY];
  return {
    client: {
      // wellFormed() checked both against the revision's schema
      name: isRecord(info) ? (info.name as string) : undefined,
      version: isRecord(info) ? (info.version as string) : undefined,
      capabilities,
    },
    logLevel: meta[LOG_LEVEL_META_KEY] as LoggingLevel | undefined, // wellFormed() found it among the levels
    meta: unreserved(meta),
  };
}

/** Whether `_meta` has any of the protocol's own keys: a legacy request has none. */
export function claimsEnvelope(meta: Record<string, unknown>): boolean {
  for (const key of RESERVED) if (key in meta) return true;
  return false;
}
