import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nameProblem, openaiProblem } from "./provider-rules.ts";

/** One scripted answer of the endpoint. */
export interface EndpointReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly args: unknown }>;
  /** Streams the arguments of all calls at once, a piece of each in turn. */
  readonly interleaved?: boolean;
  /** Answer with this HTTP status and an error body instead. */
  readonly status?: number;
  /** Headers of that answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Send this body as it is. */
  readonly raw?: string;
  /** Close the connection in the middle of the answer. */
  readonly breakOff?: boolean;
  /** Never answer. */
  readonly hang?: boolean;
}

interface WireMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: ReadonlyArray<{ readonly id: string; readonly function: { readonly arguments: string } }>;
}

interface WireTool {
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: Record<string, unknown>;
  };
}

/** What a client sent. */
export interface WireRequest {
  readonly model?: string;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly messages?: readonly WireMessage[];
  readonly tools?: readonly WireTool[];
}

export interface Endpoint extends AsyncDisposable {
  readonly baseUrl: string;
  readonly requests: WireRequest[];
  readonly keys: Array<string | undefined>;
}

type Flavour = "openai" | "deepseek";

function toolProblem(tool: WireTool, at: number): string | undefined {
  const { name, description, parameters } = tool.function;
  if ((description?.length ?? 0) > 1_024) return `Invalid 'tools[${at}].function.description': string too long`;
  const problem = nameProblem(name) ?? (parameters ? openaiProblem(parameters) : undefined);
  return problem && `Invalid schema for function '${name}': ${problem}`;
}

/** What the real services refuse about a conversation, learned from their issue threads. */
function messageProblem(messages: readonly WireMessage[], flavour: Flavour): string | undefined {
  const open = new Set<string>();
  for (const [at, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id ?? "")) return `messages[${at}]: role 'tool' must follow 'tool_calls'`;
      if (flavour === "deepseek" && typeof message.content !== "string") {
        return `messages[${at}]: invalid type: sequence, expected a string`;
      }
      if (message.content === "" || (Array.isArray(message.content) && message.content.length === 0)) {
        return `messages[${at}].content: empty`;
      }
      if (Array.isArray(message.content) && message.content.some((block) => block.type !== "text")) {
        return `messages[${at}]: only text is allowed for role 'tool'`;
      }
      continue;
    }
    if (open.size > 0) return `tool_call_ids without a response: ${[...open].join(", ")}`;
    for (const call of message.tool_calls ?? []) {
      if (typeof call.function.arguments !== "string") return `messages[${at}]: arguments must be a string`;
      if (open.has(call.id)) return `messages[${at}]: duplicate tool call id '${call.id}'`;
      open.add(call.id);
    }
  }
  return open.size > 0 ? `tool_call_ids without a response: ${[...open].join(", ")}` : undefined;
}

/** Arguments as text; a text in a script is sent as it is, which need not be JSON. */
const argumentsOf = (args: unknown): string => (typeof args === "string" ? args : JSON.stringify(args));
const pieces = (text: string, size: number) => text.match(new RegExp(`.{1,${size}}`, "gs")) ?? [];

function sendStream(
  response: ServerResponse,
  request: WireRequest,
  reply: EndpointReply,
  base: object,
  usage: object,
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const write = (chunk: object) =>
    response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...chunk })}\n\n`);
  const delta = (value: object, finish: string | null = null) =>
    write({ choices: [{ index: 0, delta: value, finish_reason: finish }] });
  const argument = (index: number, piece: string) => delta({ tool_calls: [{ index, function: { arguments: piece } }] });
  delta({ role: "assistant", content: "" });
  for (const piece of pieces(reply.reasoning ?? "", 4)) delta({ reasoning_content: piece });
  for (const piece of pieces(reply.text ?? "", 4)) delta({ content: piece });
  for (const [index, call] of (reply.calls ?? []).entries()) {
    delta({ tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }] });
    if (!reply.interleaved) for (const piece of pieces(argumentsOf(call.args), 3)) argument(index, piece);
  }
  const columns = reply.interleaved ? (reply.calls ?? []).map(({ args }) => pieces(argumentsOf(args), 3)) : [];
  for (let at = 0; columns.some((column) => at < column.length); at += 1) {
    for (const [index, column] of columns.entries()) if (at < column.length) argument(index, column[at] ?? "");
  }
  if (reply.breakOff) {
    setTimeout(() => response.destroy(), 20); // what was written must leave first
    return;
  }
  delta({}, reply.calls ? "tool_calls" : "stop");
  if (request.stream_options?.include_usage) write({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}

function sendWhole(response: ServerResponse, reply: EndpointReply, base: object, usage: object): void {
  const calls = reply.calls?.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: argumentsOf(call.args) },
  }));
  const message = {
    role: "assistant",
    content: reply.text ?? null,
    ...(reply.reasoning && { reasoning_content: reply.reasoning }),
    ...(calls && { tool_calls: calls }),
  };
  response.writeHead(200, { "content-type": "application/json" });
  const choices = [{ index: 0, finish_reason: calls ? "tool_calls" : "stop", message }];
  response.end(JSON.stringify({ ...base, object: "chat.completion", choices, usage }));
}

/** A local OpenAI-compatible endpoint that answers by script and refuses what the real ones refuse. */
export async function openaiEndpoint(script: readonly EndpointReply[], flavour: Flavour = "openai"): Promise<Endpoint> {
  const requests: WireRequest[] = [];
  const keys: Array<string | undefined> = [];

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const piece of incoming) text += piece;
    const request = JSON.parse(text || "{}") as WireRequest;
    requests.push(request);
    keys.push(incoming.headers.authorization);
    const refuse = (status: number, message: string, headers: Readonly<Record<string, string>> = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify({ error: { message, type: "invalid_request_error", code: "invalid_value" } }));
    };
    if (!incoming.url?.endsWith("/chat/completions")) return refuse(404, `unknown address ${incoming.url}`);
    const tools = (request.tools ?? []).map(toolProblem).find((problem) => problem !== undefined);
    const problem = tools ?? messageProblem(request.messages ?? [], flavour);
    if (problem) return refuse(400, problem);
    const reply = script[Math.min(requests.length, script.length) - 1] ?? { text: "" };
    if (reply.hang) return;
    if (reply.status !== undefined) return refuse(reply.status, "scripted failure", reply.headers);
    if (reply.raw !== undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(reply.raw);
      return;
    }
    const base = { id: `cmpl-${requests.length}`, created: 1, model: request.model ?? "m" };
    const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
    if (request.stream) sendStream(response, request, reply, base, usage);
    else sendWhole(response, reply, base, usage);
  }

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // a TCP server that listens
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    keys,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
