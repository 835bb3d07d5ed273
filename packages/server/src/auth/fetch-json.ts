import { codeOf } from "@tenon/core";
import { readBounded } from "@tenon/core/internal";
import { unavailable } from "./errors.ts";

/** How much of an answer is read, and for how long it is waited for. */
export interface FetchLimits {
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/**
 * Fetches JSON from an authorization server. Redirects are not followed: keys and credentials go where they were configured.
 * @param what for the log, such as `"the keys of https://login.example"`
 * @throws ConnectionError `code: "auth_unavailable"` for everything but status 200 with JSON
 */
export async function fetchJson(
  url: URL,
  init: Pick<RequestInit, "method" | "headers" | "body">,
  { timeoutMs, maxBytes }: FetchLimits,
  what: string,
): Promise<unknown> {
  const signal = AbortSignal.timeout(timeoutMs);
  let text: string | undefined;
  try {
    const response = await fetch(url, { ...init, redirect: "manual", signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw unavailable(`Reading ${what} failed with HTTP ${response.status}`);
    }
    text = await readBounded(response.body ?? [], maxBytes);
  } catch (cause) {
    if (codeOf(cause) === "auth_unavailable") throw cause;
    const why = signal.aborted ? `took longer than ${timeoutMs} ms` : "failed";
    throw unavailable(`Reading ${what} ${why}`, cause);
  }
  if (text === undefined) throw unavailable(`Reading ${what} gave more than ${maxBytes} bytes`);
  try {
    return JSON.parse(text);
  } catch {
    throw unavailable(`Reading ${what} gave no JSON`);
  }
}
