import { ConfigError, type Json, type JsonObject } from "@tenon/core";
import { digest, jsonSize, toJson } from "@tenon/core/internal";
import type { AuditAnchor, AuditKind, AuditRecord } from "./audit.ts";

/** An entry as a database keeps it. What stands beside `data` was taken from it, to be looked for. */
export interface AuditRow extends Omit<AuditRecord, "data" | "kind"> {
  readonly kind: string;
  /** JSON. */
  readonly data: string;
  readonly server: string | null;
  readonly tool: string | null;
  readonly threadId: string | null;
}

/** Before the first entry. */
export const START: AuditAnchor = { seq: 0, hash: "" };

const LONGEST_ID = 1_000;
/** What no database gives back as it was, so that its entry would look like one that somebody changed: NUL, half a character. */
const UNKEPT = /\0|\p{Surrogate}/u;
/** Bytes one entry may have: as much as a request of a client may. */
const LARGEST = 4 * 1024 * 1024;

/** Refuses what no store can keep. @returns the data as plain JSON */
export function checkEntry(callId: unknown, data: unknown): JsonObject {
  const refuse = (message: string) => new ConfigError(message, { code: "audit_entry" });
  if (typeof callId !== "string" || callId === "" || callId.length > LONGEST_ID || UNKEPT.test(callId)) {
    const given = typeof callId === "string" ? `${callId.length} characters` : typeof callId;
    throw refuse(
      `The callId of an audit entry is a text of 1 to ${LONGEST_ID} characters without NUL and half characters, given ${given}`,
    );
  }
  const json = toJson(data, "data");
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw refuse(`The data of an audit entry is an object, given ${JSON.stringify(json)?.slice(0, 80)}`);
  }
  if (jsonSize(json, LARGEST) > LARGEST) {
    throw refuse(
      `The audit entry of ${callId} has more than ${LARGEST} bytes; keep a digest of what is large, or take it out with redact`,
    );
  }
  return json;
}

/** The hash of an entry: over everything in it but itself. */
function hashOf({
  seq,
  at,
  kind,
  callId,
  pass,
  data,
  previous,
}: Omit<AuditRecord, "hash" | "kind"> & { kind: string }) {
  return digest({ seq, at, kind, callId, pass, data, previous });
}

/** The entry that follows `head`. */
export function sealEntry(
  head: AuditAnchor,
  at: string,
  entry: { readonly kind: AuditKind; readonly callId: string; readonly pass: number; readonly data: JsonObject },
): AuditRecord {
  const { kind, callId, pass, data } = entry;
  const unsealed = { seq: head.seq + 1, at, kind, callId, pass, data, previous: head.hash };
  return Object.freeze({ ...unsealed, hash: hashOf(unsealed) });
}

const wordIn = (data: JsonObject, key: string): string | null => {
  const value = data[key];
  // a database cannot look for it, and it is in the data all the same
  return typeof value === "string" && !UNKEPT.test(value) ? value : null;
};

/** What a database keeps of an entry. */
export function rowOf({ data, ...record }: AuditRecord): AuditRow {
  return {
    ...record,
    data: JSON.stringify(data),
    server: wordIn(data, "server"),
    tool: wordIn(data, "tool"),
    threadId: wordIn(data, "threadId"),
  };
}

/** The entry a row holds. What a store wrote is one; a row that was tampered with may be anything, so `verify` checks rows. */
export function recordOf({ seq, at, kind, callId, pass, data, previous, hash }: AuditRow): AuditRecord {
  const [is, told] = [kind as AuditKind, JSON.parse(data) as JsonObject]; // rowOf() made it
  return { seq, at, kind: is, callId, pass, data: told, previous, hash };
}

/** The JSON of a row's data; undefined where it is none. */
function dataOf(row: AuditRow): JsonObject | undefined {
  try {
    const data = JSON.parse(row.data) as Json;
    return typeof data === "object" && data !== null && !Array.isArray(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a row is an entry that was written as it is, and, with `seq`, at another place than it stands. */
export function isSealed(row: AuditRow, seq = row.seq): boolean {
  const data = dataOf(row);
  if (!data) return false;
  const { server, tool, threadId } = row;
  if (server !== wordIn(data, "server") || tool !== wordIn(data, "tool") || threadId !== wordIn(data, "threadId")) {
    return false;
  }
  return hashOf({ ...row, data, seq }) === row.hash;
}

/** What an outcome says came of the call. */
export function outcomeIn(row: AuditRow): string | undefined {
  const outcome = dataOf(row)?.outcome;
  return typeof outcome === "string" ? outcome : undefined;
}
