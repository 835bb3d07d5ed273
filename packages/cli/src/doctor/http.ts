import type { Route } from "@tenon/client/internal";
import { isRecord } from "@tenon/core";
import { request } from "undici";
import { parseJson } from "./json.ts";
import { since, type Visit } from "./visit.ts";

/** Bytes that one answer may have. */
const MAX_BYTES = 4 * 1024 * 1024;

/** What came back for one HTTP request. */
export type Answer =
  | {
      readonly kind: "answer";
      readonly url: URL;
      readonly status: number;
      /** Lower-case names. */
      readonly headers: Readonly<Record<string, string>>;
      /** Of the body, what came. */
      readonly text: string;
      /** How the body ended: by itself, broken off, larger than allowed, or not within the time. */
      readonly end: "end" | "cut" | "large" | "time" | "found";
      /** The JSON-RPC message for this request, where there is one. */
      readonly message?: Readonly<Record<string, unknown>>;
      readonly ms: number;
    }
  | { readonly kind: "failed"; readonly url: URL; readonly error: unknown }
  /** Not even the beginning of an answer. */
  | { readonly kind: "silent"; readonly url: URL; readonly ms: number };

/** One HTTP request. */
export interface Ask {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The id of the JSON-RPC request in it: reading ends with its answer. */
  readonly id?: number;
  /** Reading ends with this text as well. */
  readonly until?: RegExp;
  readonly ms: number;
}

/** The message of a request's answer; a refusal of the whole HTTP request has no id of its own. */
function messageFor(value: unknown, id: number | undefined): Readonly<Record<string, unknown>> | undefined {
  for (const one of Array.isArray(value) ? value : [value]) {
    if (!isRecord(one) || one.jsonrpc !== "2.0" || !("result" in one || "error" in one)) continue;
    if (one.id === id || (isRecord(one.error) && (one.id === null || one.id === undefined))) return one;
  }
  return undefined;
}

/** Reads events as they come, each looked at once. */
function eventFinder(id: number | undefined): (text: string) => Readonly<Record<string, unknown>> | undefined {
  let from = 0;
  return (text) => {
    const ends = /\r?\n\r?\n|\r\r/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      const data = text
        .slice(from, end.index)
        .split(/\r\n|\r|\n/)
        .flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? [])
        .join("\n");
      from = ends.lastIndex;
      const found = messageFor(parseJson(data), id);
      if (found) return found;
    }
    return undefined;
  };
}

/** Sends one request and reads its answer, as far as it is needed and no longer than it may take. Never throws. */
export async function send(visit: Visit, route: Route, ask: Ask): Promise<Answer> {
  const began = performance.now();
  const { url, method, body, id, until } = ask;
  const over = visit.deadline.within(ask.ms);
  // leaving an answer half read ends its connection
  const done = new AbortController();
  const signal = AbortSignal.any([over, done.signal]);
  let text = "";
  let head: { status: number; headers: Record<string, string> } | undefined;
  const answer = (end: (Answer & { kind: "answer" })["end"], message?: Readonly<Record<string, unknown>>): Answer => {
    if (!head) return { kind: "silent", url, ms: since(began) };
    const whole = message ?? (end === "end" ? messageFor(parseJson(text), id) : undefined);
    return { kind: "answer", url, ...head, text, end, ms: since(began), ...(whole && { message: whole }) };
  };
  try {
    const response = await request(url, {
      method,
      headers: { "user-agent": "tenon-doctor", "accept-encoding": "identity", ...ask.headers },
      body: body ?? null,
      dispatcher: route.dispatcher,
      signal,
    });
    const headers = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
    head = { status: response.statusCode, headers };
    const isStream = /^text\/event-stream/i.test(headers["content-type"] ?? "");
    const find = isStream ? eventFinder(id) : () => undefined;
    const decoder = new TextDecoder();
    let bytes = 0;
    for await (const part of response.body) {
      const chunk = part as Uint8Array; // undici's bodies are bytes
      bytes += chunk.byteLength;
      if (bytes > MAX_BYTES) return answer("large");
      text += decoder.decode(chunk, { stream: true });
      const message = find(text);
      if (message) return answer("found", message);
      if (until?.test(text)) return answer("found");
    }
    return answer("end");
  } catch (error) {
    if (over.aborted) return answer("time");
    return head ? answer("cut") : { kind: "failed", url, error };
  } finally {
    done.abort();
  }
}
