import { setTimeout as sleep } from "node:timers/promises";
import { AuthError, ConfigError, ConnectionError, isRecord, ProtocolError, type TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { OpenAITool, OpenAIToolCall, OpenAIToolMessage } from "./openai-tools.ts";

/** A message of an OpenAI-compatible conversation. */
export type ChatMessage =
  | { readonly role: "system" | "developer" | "user"; readonly content: string }
  | { readonly role: "assistant"; readonly content: string | null; readonly tool_calls?: readonly OpenAIToolCall[] }
  | OpenAIToolMessage;

/** What a model answered. */
export type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

/** Where an OpenAI-compatible endpoint is. */
export interface ModelEndpoint {
  /** Its address with its version, for example `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  /** Sent as a bearer token. Default: none. */
  readonly apiKey?: string;
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds until one request counts as failed. Default 120,000. */
  readonly timeoutMs?: number;
  /** How often a request is repeated after 429, 5xx and lost connections. Default 2. */
  readonly maxRetries?: number;
}

const ENDPOINT = ["baseUrl", "apiKey", "headers", "timeoutMs", "maxRetries"] as const satisfies ReadonlyArray<
  keyof ModelEndpoint
>;

/** One request for an answer. */
export interface Completion {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly OpenAITool[];
  readonly stream: boolean;
  /** Further fields of the request's body, for example `temperature`. */
  readonly request?: Readonly<Record<string, unknown>> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onText?: (delta: string) => void;
}

const TIMEOUT_MS = 120_000;
const MAX_WAIT_MS = 30_000;
const MAX_ANSWER = 10_000_000;
const HOSTED: Readonly<Record<string, { url: string; key: string }>> = {
  openai: { url: "https://api.openai.com/v1", key: "OPENAI_API_KEY" },
  deepseek: { url: "https://api.deepseek.com/v1", key: "DEEPSEEK_API_KEY" },
};

/**
 * The endpoint and the model's name there. With an `endpoint` the name is sent as given; without one, `openai:…` and
 * `deepseek:…` mean those services, anything else the endpoint in `TENON_MODEL_BASE_URL`.
 * @throws ConfigError `code: "missing_key"`, `"missing_base_url"`
 */
export function endpointOf(spec: string, endpoint?: ModelEndpoint): { endpoint: ModelEndpoint; model: string } {
  if (endpoint) {
    checkOptions(endpoint, ENDPOINT, "bareLoop(options).endpoint");
    return { endpoint, model: spec };
  }
  const [provider = "", ...rest] = spec.split(":");
  const model = rest.join(":");
  const hosted = Object.hasOwn(HOSTED, provider) ? HOSTED[provider] : undefined;
  if (hosted) {
    const apiKey = process.env[hosted.key];
    if (apiKey) return { endpoint: { baseUrl: hosted.url, apiKey }, model };
    throw new ConfigError(`The model "${spec}" needs a key: set ${hosted.key} or the option endpoint`, {
      code: "missing_key",
    });
  }
  const baseUrl = process.env.TENON_MODEL_BASE_URL;
  if (!baseUrl) {
    throw new ConfigError(
      `The model "${spec}" needs the address of its endpoint: set TENON_MODEL_BASE_URL or the option endpoint, for example { baseUrl: "http://127.0.0.1:8080/v1" }`,
      { code: "missing_base_url" },
    );
  }
  const apiKey = process.env.TENON_MODEL_API_KEY;
  return { endpoint: { baseUrl, ...(apiKey && { apiKey }) }, model: provider === "openai-compatible" ? model : spec };
}

/** Milliseconds a `Retry-After` asks for: seconds or a date. */
function retryAfter(response: Response): number | undefined {
  const value = response.headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** A body as text, piece by piece, up to the limit. */
async function* pieces(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER) {
      throw new ProtocolError(`The model's answer is larger than ${MAX_ANSWER} bytes`, { code: "answer_too_large" });
    }
    yield decoder.decode(chunk, { stream: true });
  }
}

async function bodyText(response: Response): Promise<string> {
  let text = "";
  for await (const piece of pieces(response)) text += piece;
  return text;
}

async function refused(response: Response, model: string): Promise<TenonError> {
  const text = await bodyText(response).catch(() => "");
  let said = text;
  try {
    const body: unknown = JSON.parse(text);
    if (isRecord(body) && isRecord(body.error) && typeof body.error.message === "string") said = body.error.message;
  } catch {
    // not JSON: a proxy's page
  }
  const { status } = response;
  const message = `The endpoint of model "${model}" answered ${status}${said ? `: ${said.slice(0, 500)}` : ""}`;
  const data = { status, ...(retryAfter(response) !== undefined && { retryAfterMs: retryAfter(response) }) };
  if (status === 401 || status === 403) return new AuthError(message, { code: "model_auth", data });
  const retryable = status === 408 || status === 429 || status >= 500;
  return new ProtocolError(message, { code: retryable ? "model_unavailable" : "model_refused", retryable, data });
}

function badAnswer(why: string): ProtocolError {
  return new ProtocolError(`The model's endpoint answered against its protocol: ${why}`, { code: "model_bad_answer" });
}

/** The calls of an answer; a call without an id gets one, so that it can be answered. */
function callsOf(given: unknown): OpenAIToolCall[] {
  if (!Array.isArray(given)) return [];
  const seen = new Set<string>(); // two answers under one id would make the conversation invalid
  return given.filter(isRecord).map((call, at) => {
    const own = typeof call.id === "string" && call.id !== "" && !seen.has(call.id) ? call.id : undefined;
    const id = own ?? `call_${crypto.randomUUID()}_${at}`;
    seen.add(id);
    const fn = isRecord(call.function) ? call.function : {};
    const args = isRecord(fn.arguments) ? JSON.stringify(fn.arguments) : fn.arguments; // some servers send the object
    return {
      id,
      type: "function",
      function: { name: String(fn.name ?? ""), arguments: typeof args === "string" ? args : "" },
    };
  });
}

function toMessage(content: unknown, calls: readonly OpenAIToolCall[]): AssistantMessage {
  const text = typeof content === "string" ? content : "";
  if (calls.length > 0) return { role: "assistant", content: text === "" ? null : text, tool_calls: calls };
  return { role: "assistant", content: text };
}

async function readWhole(response: Response): Promise<AssistantMessage> {
  const text = await bodyText(response);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw badAnswer(`not JSON but ${JSON.stringify(text.slice(0, 100))}`);
  }
  const choice: unknown = isRecord(body) && Array.isArray(body.choices) ? body.choices[0] : undefined;
  if (!isRecord(choice) || !isRecord(choice.message)) throw badAnswer("no choices[0].message");
  return toMessage(choice.message.content, callsOf(choice.message.tool_calls));
}

interface Draft {
  id?: string;
  name: string;
  arguments: string;
}

async function readStream(response: Response, onText: (delta: string) => void): Promise<AssistantMessage> {
  let rest = "";
  let content = "";
  let finished = false;
  const drafts = new Map<number, Draft>();
  const take = (line: string): void => {
    const data = /^data:(.*)$/s.exec(line.trimEnd())?.[1]?.trim();
    if (!data) return;
    if (data === "[DONE]") {
      finished = true;
      return;
    }
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch {
      throw badAnswer(`an event that is not JSON: ${JSON.stringify(data.slice(0, 100))}`);
    }
    if (isRecord(chunk) && isRecord(chunk.error))
      throw badAnswer(String(chunk.error.message ?? "an error").slice(0, 500));
    const choice: unknown = isRecord(chunk) && Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (!isRecord(choice)) return;
    if (typeof choice.finish_reason === "string") finished = true;
    const delta = isRecord(choice.delta) ? choice.delta : {};
    if (typeof delta.content === "string" && delta.content !== "") {
      content += delta.content;
      onText(delta.content);
    }
    for (const part of Array.isArray(delta.tool_calls) ? delta.tool_calls.filter(isRecord) : []) {
      const index = typeof part.index === "number" ? part.index : drafts.size;
      const draft = drafts.get(index) ?? { name: "", arguments: "" };
      drafts.set(index, draft);
      if (typeof part.id === "string" && part.id !== "") draft.id ??= part.id;
      const fn = isRecord(part.function) ? part.function : {};
      if (typeof fn.name === "string") draft.name += fn.name;
      if (typeof fn.arguments === "string") draft.arguments += fn.arguments;
    }
  };
  for await (const piece of pieces(response)) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  }
  take(rest);
  if (!finished)
    throw new ConnectionError("The model's answer broke off", { code: "model_broke_off", retryable: true });
  const calls = [...drafts.entries()].sort(([a], [b]) => a - b);
  return toMessage(content, callsOf(calls.map(([, { id, ...fn }]) => ({ id, function: fn }))));
}

async function once(endpoint: ModelEndpoint, completion: Completion): Promise<AssistantMessage> {
  const { model, messages, tools, stream, request } = completion;
  const limit = AbortSignal.timeout(endpoint.timeoutMs ?? TIMEOUT_MS);
  const signal = completion.signal ? AbortSignal.any([completion.signal, limit]) : limit;
  try {
    const response = await fetch(`${endpoint.baseUrl.replace(/\/+$/, "")}/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(endpoint.apiKey !== undefined && { authorization: `Bearer ${endpoint.apiKey}` }),
        ...endpoint.headers,
      },
      body: JSON.stringify({ ...request, model, messages, ...(tools.length > 0 && { tools }), stream }),
      signal,
    });
    if (!response.ok) throw await refused(response, model);
    const streamed = response.headers.get("content-type")?.includes("text/event-stream");
    const onText = completion.onText ?? (() => {});
    if (streamed) return await readStream(response, onText);
    const message = await readWhole(response);
    if (message.content) onText(message.content);
    return message;
  } catch (cause) {
    if (cause instanceof AuthError || cause instanceof ProtocolError || cause instanceof ConnectionError) throw cause;
    completion.signal?.throwIfAborted();
    const what = limit.aborted ? `did not answer within ${endpoint.timeoutMs ?? TIMEOUT_MS} ms` : "cannot be reached";
    throw new ConnectionError(`The endpoint of model "${model}" at ${endpoint.baseUrl} ${what}`, {
      code: limit.aborted ? "model_timeout" : "model_unreachable",
      retryable: true,
      cause,
    });
  }
}

/**
 * One answer of an OpenAI-compatible endpoint. 429, 5xx and lost connections are retried, as late as `Retry-After` asks when
 * that is within 30 s; after text was shown nothing is repeated.
 *
 * @throws AuthError `model_auth`; ProtocolError `model_refused`, `model_unavailable`, `model_bad_answer`, `answer_too_large`;
 *   ConnectionError `model_unreachable`, `model_timeout`, `model_broke_off`; the signal's reason when it aborts
 */
export async function complete(endpoint: ModelEndpoint, completion: Completion): Promise<AssistantMessage> {
  const retries = endpoint.maxRetries ?? 2;
  for (let attempt = 0; ; attempt += 1) {
    completion.signal?.throwIfAborted();
    let shown = false;
    const onText = (delta: string) => {
      shown = true;
      completion.onText?.(delta);
    };
    try {
      return await once(endpoint, { ...completion, onText });
    } catch (error) {
      const known = error instanceof ProtocolError || error instanceof ConnectionError;
      if (!known || !error.retryable || shown || attempt >= retries) throw error;
      const asked = isRecord(error.data) ? error.data.retryAfterMs : undefined;
      const wait = typeof asked === "number" ? asked : 500 * 2 ** attempt * (0.75 + Math.random() / 2);
      if (wait > MAX_WAIT_MS) throw error;
      await sleep(wait, undefined, completion.signal ? { signal: completion.signal } : {}).catch(() => undefined);
    }
  }
}
