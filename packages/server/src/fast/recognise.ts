import type { IncomingHttpHeaders } from "node:http";
import { type LoggingLevel, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/server";
import { type Era, isRecord } from "@tenon/core";
import { decodeHeader } from "../definition/param-headers.ts";
import type { Method } from "../dispatch/dispatch.ts";
import { type Shape, shapeOf, wholeArguments, wrongParams } from "../dispatch/params.ts";
import { withValidTrace } from "../dispatch/trace.ts";
import type { ClientDescription } from "../handler/context.ts";
import { claimsEnvelope, isToken, REVISION, readEnvelope } from "./envelope.ts";

/** A request that is beyond doubt what the revision asks for. */
export interface Recognised {
  readonly era: Era;
  readonly id: string | number;
  readonly method: Method;
  readonly params: Record<string, unknown>;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly client: ClientDescription;
  readonly logLevel: LoggingLevel | undefined;
  readonly requestState?: string | undefined;
  readonly inputResponses?: Readonly<Record<string, unknown>> | undefined;
}

const MESSAGE_KEYS: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params"]);
const ROUND_KEYS: ReadonlySet<string> = new Set(["requestState", "inputResponses"]);

/** Bare answers only: what looks like a wrapped message is dropped, and so asked for again. */
function bareResponses(given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).filter(([, entry]) => isRecord(entry) && !("method" in entry) && !("result" in entry)),
  );
}

function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** Whether the header that repeats a name agrees, in either of its two spellings. */
function repeats(value: string | undefined, name: unknown): boolean {
  if (value === undefined) return false;
  return value === name || decodeHeader(value.trim()) === name;
}

/** The parts of a request, whatever carried it. */
interface Message {
  readonly id: string | number;
  readonly method: Method;
  readonly shape: Shape;
  /** Parameters without `_meta`. */
  readonly given: Record<string, unknown>;
  readonly meta: Record<string, unknown>;
}

function readMessage(body: unknown): Message | undefined {
  if (!isRecord(body) || body.jsonrpc !== "2.0" || typeof body.method !== "string") return undefined;
  for (const key in body) if (!MESSAGE_KEYS.has(key)) return undefined;
  const { id, params = {} } = body;
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  const shape = shapeOf(body.method);
  if (!shape || !isRecord(params)) return undefined;
  const method = body.method as Method; // the methods with a shape are among ours
  const { _meta: meta = {}, ...given } = params;
  if (!isRecord(meta)) return undefined;
  for (const key in given) {
    if (!Object.hasOwn(shape.params, key) && !(shape.named && ROUND_KEYS.has(key))) return undefined;
  }
  if (typeof given.arguments === "string") given.arguments = wholeArguments(given.arguments);
  if (wrongParams(shape, given) !== undefined) return undefined;
  // a number or a string by the check above
  return { id: id as string | number, method, shape, given, meta };
}

function asModern({ id, method, given, meta }: Message, body: unknown): Recognised | undefined {
  const envelope = readEnvelope(meta, body);
  if (!envelope) return undefined;
  const { requestState, inputResponses, ...params } = given;
  if (requestState !== undefined && typeof requestState !== "string") return undefined;
  if (inputResponses !== undefined && !isRecord(inputResponses)) return undefined;
  return {
    id,
    method,
    era: "modern",
    params,
    meta: withValidTrace(envelope.meta),
    client: envelope.client,
    logLevel: envelope.logLevel,
    ...(requestState !== undefined && { requestState }),
    ...(inputResponses !== undefined && { inputResponses: bareResponses(inputResponses) }),
  };
}

/**
 * Reads a message that is plainly a well-formed request of either era. It refuses nothing: whatever it does not recognise
 * (undefined) goes to the protocol layer, which knows every wrong answer. So the two paths cannot disagree about errors, and
 * this one stays small.
 */
export function recognise(headers: IncomingHttpHeaders, body: unknown): Recognised | undefined {
  const message = readMessage(body);
  if (!message) return undefined;
  const { id, method, shape, given, meta } = message;
  const version = header(headers, "mcp-protocol-version");
  if (version !== REVISION) {
    if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return undefined;
    const accept = headers.accept ?? "";
    if (!accept.includes("application/json") || !accept.includes("text/event-stream")) return undefined;
    if (claimsEnvelope(meta) || !isToken(meta.progressToken)) return undefined;
    if ("requestState" in given || "inputResponses" in given) return undefined;
    const client = { name: undefined, version: undefined, capabilities: {} };
    // a legacy client without a session never said a level: it gets everything, as the SDK does
    return { id, method, era: "legacy", params: given, meta: withValidTrace(meta), client, logLevel: "debug" };
  }
  if (header(headers, "mcp-method") !== method) return undefined;
  if (shape.named !== undefined && !repeats(header(headers, "mcp-name"), given[shape.named])) return undefined;
  return asModern(message, body);
}

/** The same for a line of standard input, where only a modern request stands for itself. */
export function recogniseLine(body: unknown): Recognised | undefined {
  const message = readMessage(body);
  return message && asModern(message, body);
}
