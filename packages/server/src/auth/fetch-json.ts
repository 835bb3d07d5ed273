import { unavailable } from "./errors.ts";

/** How much of an answer is read, and for how long it is waited for. */
export interface FetchLimits {
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

async function readLimited(response: Response, maxBytes: number): Promise<string | undefined> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  let size = 0;
  let text = "";
  for await (const part of response.body) {
    size += part.byteLength;
    if (size > maxBytes) return undefined; // leaving the loop cancels the rest
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
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
    text = await readLimited(response, maxBytes);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "auth_unavailable") throw cause;
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
