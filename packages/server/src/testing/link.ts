import { setTimeout as sleep } from "node:timers/promises";
import { type Era, isRecord, ProtocolError } from "@tenon/core";
import { LEGACY_REVISION, MODERN_REVISION } from "@tenon/core/internal";
import type { FetchOptions } from "../http/http.ts";
import type { Answerer } from "./script.ts";
import { type Fetchable, headerValue, type Message, messages, post, rpcError } from "./wire.ts";

/** Who the test client says it is, and how it reaches the server. */
export interface Introduction {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly client: { readonly name: string; readonly version: string };
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Calls that become tasks are followed to their result. */
  readonly followsTasks: boolean;
  readonly logLevel: string;
  readonly fetchOptions: FetchOptions;
  /** Answers other requests of the server, such as sampling. */
  respond(method: string, params: Record<string, unknown>): unknown;
  onNotification(method: string, params: Record<string, unknown>): void;
}

/** Milliseconds between two looks at a task: in one process looking costs nothing. */
const LOOK_MS = 10;

export interface Sending {
  /** Cancels the request. */
  readonly signal?: AbortSignal | undefined;
  /** Headers of this request, besides those of the connection. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A connection on one era: sends a request, plays the client's part until its result is there. */
export interface Link {
  readonly era: Era;
  readonly server: Message;
  request(method: string, params: Record<string, unknown>, answers: Answerer, sending?: Sending): Promise<Message>;
  close(): Promise<void>;
}

/** The questions of a round, or one pushed request, answered. */
async function respond(
  me: Introduction,
  request: unknown,
  answers: Answerer,
  key: string | undefined,
): Promise<unknown> {
  const { method, params } = isRecord(request) ? request : {};
  const given = isRecord(params) ? params : {};
  return method === "elicitation/create" ? answers.answer(given, key) : me.respond(String(method), given);
}

function resultOf(message: Message): Message {
  if (message.error !== undefined) throw rpcError(message.error);
  return isRecord(message.result) ? message.result : {};
}

const noAnswer = (method: string, status: number): ProtocolError =>
  new ProtocolError(`The server ended ${method} without an answer (HTTP ${status})`, {
    code: status >= 400 ? "http_error" : "bad_answer",
    data: { status },
  });

function note(me: Introduction, message: Message): void {
  if (typeof message.method === "string" && message.id === undefined) {
    me.onNotification(message.method, isRecord(message.params) ? message.params : {});
  }
}

/** 2026-07-28: every request stands alone; a question ends it and a retry brings the answers. */
export async function openModern(server: Fetchable, me: Introduction): Promise<Link> {
  let lastId = 0;
  async function once(method: string, params: Record<string, unknown>, sending: Sending): Promise<Message> {
    lastId += 1;
    const id = lastId;
    const name = params.name ?? params.uri ?? params.taskId;
    const given = isRecord(params._meta) ? params._meta : {};
    const response = await post(server, {
      url: me.url,
      fetchOptions: me.fetchOptions,
      signal: sending.signal,
      headers: {
        "mcp-protocol-version": MODERN_REVISION,
        "mcp-method": method,
        ...(typeof name === "string" && { "mcp-name": headerValue(name) }),
        ...me.headers,
        ...sending.headers,
      },
      body: {
        jsonrpc: "2.0",
        id,
        method,
        params: {
          ...params,
          _meta: {
            progressToken: id,
            "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
            "io.modelcontextprotocol/clientInfo": me.client,
            "io.modelcontextprotocol/clientCapabilities": me.capabilities,
            "io.modelcontextprotocol/logLevel": me.logLevel,
            ...given,
          },
        },
      },
    });
    for await (const message of messages(response)) {
      note(me, message);
      if (message.id === id || message.error !== undefined) return resultOf(message);
    }
    throw noAnswer(method, response.status);
  }
  async function answersTo(asked: Message, answers: Answerer): Promise<Record<string, unknown>> {
    const inputResponses: Record<string, unknown> = {};
    for (const [key, request] of isRecord(asked.inputRequests) ? Object.entries(asked.inputRequests) : []) {
      inputResponses[key] = await respond(me, request, answers, key);
    }
    return inputResponses;
  }
  /** A task's result, as the call would have got it; what it asks meanwhile is answered. */
  async function settle(taskId: unknown, answers: Answerer, sending: Sending): Promise<Message> {
    for (;;) {
      const task = await once("tasks/get", { taskId }, sending);
      if (task.status === "completed" && isRecord(task.result)) return task.result;
      if (task.status === "failed") throw rpcError(task.error);
      if (task.status === "cancelled") throw new ProtocolError("The task was cancelled", { code: "cancelled" });
      if (task.status === "input_required") {
        await once("tasks/update", { taskId, inputResponses: await answersTo(task, answers) }, sending);
      } else await sleep(LOOK_MS, undefined, sending.signal ? { signal: sending.signal } : {});
    }
  }
  return {
    era: "modern",
    server: await once("server/discover", {}, {}),
    async request(method, params, answers, sending = {}) {
      let result = await once(method, params, sending);
      while (result.resultType === "input_required") {
        const inputResponses = await answersTo(result, answers);
        const { requestState } = result;
        result = await once(
          method,
          { ...params, inputResponses, ...(requestState !== undefined && { requestState }) },
          sending,
        );
      }
      return result.resultType === "task" && me.followsTasks ? settle(result.taskId, answers, sending) : result;
    },
    close: async () => undefined,
  };
}

/** 2025-11-25: a session, into which the server pushes its questions while the call runs. */
export async function openLegacy(server: Fetchable, me: Introduction): Promise<Link> {
  let lastId = 0;
  let headers: Record<string, string> = { ...me.headers };
  const send = (body: unknown, sending: Sending = {}): Promise<Response> =>
    post(server, {
      url: me.url,
      body,
      headers: { ...headers, ...sending.headers },
      fetchOptions: me.fetchOptions,
      signal: sending.signal,
    });
  async function request(
    method: string,
    params: Record<string, unknown>,
    answers: Answerer | undefined,
    sending: Sending = {},
  ): Promise<Message> {
    lastId += 1;
    const id = lastId;
    const given = isRecord(params._meta) ? params._meta : {};
    const body = { jsonrpc: "2.0", id, method, params: { ...params, _meta: { progressToken: id, ...given } } };
    const response = await send(body, sending);
    const session = response.headers.get("mcp-session-id");
    if (session !== null) headers = { ...headers, "mcp-session-id": session };
    let unanswered: { error: unknown } | undefined;
    for await (const message of messages(response)) {
      note(me, message);
      if (message.method !== undefined && message.id !== undefined && answers) {
        const answered = (body: object): Promise<Response> => send({ jsonrpc: "2.0", id: message.id, ...body });
        try {
          await answered({ result: await respond(me, message, answers, undefined) });
        } catch (error) {
          // the server must not wait for ever: it hears that there is no answer; when it is done, the test hears why
          unanswered ??= { error };
          await answered({ error: { code: -32603, message: "The test has no answer" } });
        }
      } else if (message.id === id || (message.error !== undefined && message.id === null)) {
        if (unanswered) throw unanswered.error;
        return resultOf(message);
      }
    }
    if (unanswered) throw unanswered.error;
    throw noAnswer(method, response.status);
  }
  const info = await request(
    "initialize",
    { protocolVersion: LEGACY_REVISION, clientInfo: me.client, capabilities: me.capabilities },
    undefined,
  );
  headers = { ...headers, "mcp-protocol-version": String(info.protocolVersion) };
  await send({ jsonrpc: "2.0", method: "notifications/initialized" });
  if (isRecord(info.capabilities) && info.capabilities.logging) {
    await request("logging/setLevel", { level: me.logLevel }, undefined);
  }
  return {
    era: "legacy",
    server: info,
    request: (method, params, answers, sending) => request(method, params, answers, sending),
    async close() {
      const request = new Request(me.url, { method: "DELETE", headers: { host: new URL(me.url).host, ...headers } });
      await server.fetch(request, me.fetchOptions);
    },
  };
}
