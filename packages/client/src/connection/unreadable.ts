import { randomUUID } from "node:crypto";
import { isRecord, messageOf } from "@tenon/core";
import { IdScanner } from "./id-scanner.ts";

const INTERNAL_ERROR = -32_603;
const KEYS = new Set(["jsonrpc", "id", "result", "error"]);
const MAX_SHOWN = 300;
/** Marks an answer as one that this process made of something unreadable; no server can know it. */
const MARK = `unreadable-${randomUUID()}`;

/** JSON, cut. What came from a parser and is nested too deeply for that is only named. */
function inShort(value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = Array.isArray(value) ? "a deep list" : "a deep object";
  }
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

type Answer = Readonly<Record<string, unknown>>;

function unreadable(id: string | number, reason: string): Answer {
  return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: reason, data: { [MARK]: true } } };
}

/** Why an answer could not be read, or undefined for an error that the server itself sent. */
export function unreadableReason(error: { readonly message: string; readonly data?: unknown }): string | undefined {
  return isRecord(error.data) && error.data[MARK] === true ? error.message : undefined;
}

function isPlain(message: Answer): boolean {
  const { jsonrpc, id, result, error } = message;
  if (jsonrpc !== "2.0" || !(typeof id === "string" || Number.isSafeInteger(id))) return false;
  for (const key in message) if (!KEYS.has(key)) return false;
  if (isRecord(result)) return !("error" in message) && (result._meta === undefined || isRecord(result._meta));
  return !("result" in message) && isRecord(error) && Number.isInteger(error.code) && typeof error.message === "string";
}

function errorOf(error: unknown): object {
  if (!isRecord(error)) return { code: INTERNAL_ERROR, message: typeof error === "string" ? error : inShort(error) };
  const { code, message, data } = error;
  const known = Number.isInteger(code);
  const text = typeof message === "string" ? message : inShort(error);
  return {
    code: known ? code : INTERNAL_ERROR,
    message: known || code === undefined ? text : `${text} (code ${inShort(code)})`,
    ...(data !== undefined && { data }),
  };
}

function answerOf(message: Answer, id: string | number): Answer {
  const { result, error } = message;
  const failed = error !== undefined && error !== null;
  if (failed && result !== undefined && result !== null)
    return unreadable(id, `it has both a result and an error: ${inShort(error)}`);
  if (failed) return { jsonrpc: "2.0", id, error: errorOf(error) };
  if (!("result" in message)) return unreadable(id, `it has neither a result nor an error: ${inShort(message)}`);
  if (!isRecord(result)) return unreadable(id, `its result is not an object but ${inShort(result)}`);
  const { _meta, ...rest } = result;
  return { jsonrpc: "2.0", id, result: isRecord(_meta) ? result : rest };
}

/**
 * A message as the SDK takes it. Answers are read by what they say: `error: null` beside a result, a key too many or an
 * error without a code cost nobody his answer; one that says nothing becomes an error (see `unreadableReason`) of the
 * request it names, instead of a silence. Everything else stays as it is.
 */
export function readable(message: unknown): unknown {
  if (!isRecord(message) || "method" in message || isPlain(message)) return message;
  const { id } = message;
  return typeof id === "string" || Number.isSafeInteger(id) ? answerOf(message, id as string | number) : message; // checked
}

/** The answer to make of a text that is no JSON, when it was meant as one; undefined for words between the messages. */
export function fromBrokenText(text: string, problem: string): Answer | undefined {
  if (!/^\s*\{/.test(text) || !/"(result|error)"\s*:/.test(text)) return undefined;
  const scanner = new IdScanner();
  scanner.push(Buffer.from(text));
  return scanner.id === undefined
    ? undefined
    : unreadable(scanner.id, `it is no JSON (${problem}): ${text.slice(0, MAX_SHOWN)}`);
}

/**
 * The messages in the body of one answer over HTTP.
 * @throws SyntaxError for what is no message
 */
export function readBody(text: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch (error) {
    const problem = messageOf(error);
    throw new SyntaxError(
      text === "" ? "its body is empty" : `its body is no JSON (${problem}): ${text.slice(0, MAX_SHOWN)}`,
    );
  }
  if (Array.isArray(body)) return body.map(readable);
  const message = readable(body);
  const named = isRecord(message) && ("method" in message || (message.id !== undefined && message.id !== null));
  if (!named) throw new SyntaxError(`its body names no request: ${inShort(body)}`);
  return message;
}

/** Events above this many bytes are not looked at: reading them twice would cost more than it gives. */
const MAX_LOOK = 256 * 1024;

/** One event of a stream, as the SDK takes it; whole lines, the empty one at its end included. */
export function readableEvent(event: Buffer): Buffer {
  if (event.length > MAX_LOOK) return event;
  const text = event.toString();
  const lines = text.split(/\r\n|\n|\r/);
  const data = lines.flatMap((line) => (line.startsWith("data:") ? [line.slice(5).replace(/^ /, "")] : []));
  if (data.length === 0) return event;
  const given = data.join("\n");
  let fixed: unknown;
  try {
    const parsed: unknown = JSON.parse(given);
    const messages = Array.isArray(parsed) ? parsed.map(readable) : [readable(parsed)];
    if (!Array.isArray(parsed) && messages[0] === parsed) return event;
    fixed = messages;
  } catch (error) {
    const answer = fromBrokenText(given, messageOf(error));
    if (!answer) return event;
    fixed = [answer];
  }
  const others = lines.filter((line) => line !== "" && !line.startsWith("data:")).map((line) => `${line}\n`);
  const written = (fixed as unknown[]).map((message) => `${others.join("")}data: ${JSON.stringify(message)}\n\n`); // made above
  return Buffer.from(written.join(""));
}

/**
 * What came after the last empty line, when the stream ended: an event that lacks only the lines of its end, or the
 * beginning of one. Only JSON that is whole makes it the first.
 */
export function endedEvent(rest: Buffer): Buffer {
  const data = rest
    .toString()
    .split(/\r\n|\n|\r/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : []));
  try {
    JSON.parse(data.join("\n"));
  } catch {
    return rest;
  }
  return readableEvent(Buffer.concat([rest, Buffer.from("\n\n")]));
}
