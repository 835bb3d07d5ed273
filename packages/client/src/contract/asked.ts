import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { isRecord } from "@tenon/core";

/** The requests by which a client learns what a server can do. */
const OPENING = new Set(["server/discover", "initialize"]);
/** How a server says that it does not know the version of the contract. */
const REASON = "unsupported_contract_version";

/** A server refused the version that was asked for: that says nothing about the revision of the protocol it speaks. */
export class VersionRefused extends Error {
  constructor(words: string) {
    super(words);
    this.name = "VersionRefused";
  }
}

/** What the requests that open one connection ask for, and what came of it. */
export interface Asked {
  readonly meta: Readonly<Record<string, unknown>>;
  /** Milliseconds the server may take to say what it can do. */
  readonly limitMs?: number;
  refused?: VersionRefused;
}

/** The message with the version asked for. @throws VersionRefused instead of the handshake that the SDK tries next */
export function withAsked(asked: Asked | undefined, message: JSONRPCMessage): JSONRPCMessage {
  if (!asked || !("method" in message) || !OPENING.has(message.method)) return message;
  if (asked.refused) throw asked.refused;
  const { _meta: meta } = message.params ?? {};
  return { ...message, params: { ...message.params, _meta: { ...(isRecord(meta) ? meta : {}), ...asked.meta } } };
}

function refusalIn(error: unknown): VersionRefused | undefined {
  if (!isRecord(error) || !isRecord(error.data) || error.data.reason !== REASON) return undefined;
  return new VersionRefused(typeof error.message === "string" ? error.message.slice(0, 500) : REASON);
}

/** Notes an answer that refuses the version asked for. */
export function noteAnswer(asked: Asked | undefined, method: string, answer: unknown): void {
  if (!asked || !OPENING.has(method) || !isRecord(answer)) return;
  const refused = refusalIn(answer.error);
  if (refused) asked.refused = refused;
}

/** The same of an HTTP answer with an error status, which the SDK throws. */
export function noteThrown(asked: Asked | undefined, method: string, thrown: unknown): void {
  if (!asked || !OPENING.has(method) || !(thrown instanceof Error) || !("data" in thrown)) return;
  const text = isRecord(thrown.data) ? thrown.data.text : undefined;
  if (typeof text !== "string") return;
  try {
    noteAnswer(asked, method, JSON.parse(text));
  } catch {
    // no JSON: not what is looked for
  }
}
