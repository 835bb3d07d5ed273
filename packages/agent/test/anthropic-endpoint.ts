import type { ServerResponse } from "node:http";
import { json, type LocalEndpoint, localEndpoint } from "./http.ts";
import type { EndpointReply } from "./openai-endpoint.ts";
import { anthropicProblem, nameProblem } from "./provider-rules.ts";

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly text?: string;
  readonly tool_use_id?: string;
  readonly content?: unknown;
}

const blocksOf = (content: unknown): Block[] =>
  Array.isArray(content) ? content : [{ type: "text", text: String(content ?? "") }];

/** The parts of a request this endpoint looks at. */
interface Body {
  readonly model?: string;
  readonly stream?: boolean;
  readonly max_tokens?: unknown;
  readonly tools?: readonly { name: string; input_schema: Record<string, unknown> }[];
  readonly messages?: readonly { role: string; content: unknown }[];
}

/** What Anthropic's Messages API refuses, learned from its error messages. */
function problemOf(body: Body): string | undefined {
  if (typeof body.max_tokens !== "number") return "max_tokens: Field required";
  for (const [at, tool] of (body.tools ?? []).entries()) {
    const problem = nameProblem(tool.name) ?? anthropicProblem(tool.input_schema);
    if (problem) return `tools.${at}.custom.input_schema: ${problem}`;
  }
  let open: string[] = [];
  for (const [at, message] of (body.messages ?? []).entries()) {
    if (message.role !== "user" && message.role !== "assistant")
      return `messages.${at}.role: Input should be 'user' or 'assistant'`;
    const blocks = blocksOf(message.content);
    const empty = blocks.some((block) => block.type === "text" && (block.text ?? "") === "");
    if (empty) return `messages.${at}: text content blocks must be non-empty`;
    const answered = blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id ?? "");
    const missing = open.filter((id) => !answered.includes(id));
    if (missing.length > 0)
      return `messages.${at}: tool_use ids were found without tool_result blocks immediately after: ${missing}`;
    const strange = answered.find((id) => !open.includes(id));
    if (strange !== undefined) return `messages.${at}: unexpected tool_use_id found in tool_result blocks: ${strange}`;
    open = blocks.filter((block) => block.type === "tool_use").map((block) => block.id ?? "");
    const bad = open.find((id) => !/^[a-zA-Z0-9_-]+$/.test(id));
    if (bad !== undefined) return `messages.${at}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
  }
  return open.length > 0 ? `tool_use ids were found without tool_result blocks: ${open}` : undefined;
}

function send(response: ServerResponse, body: Body, reply: EndpointReply, at: number): void {
  const content = [
    ...(reply.text ? [{ type: "text", text: reply.text }] : []),
    ...(reply.calls ?? []).map((call) => ({ type: "tool_use", id: call.id, name: call.name, input: call.args })),
  ];
  const usage = { input_tokens: 3, output_tokens: 5 };
  const message = {
    id: `msg_${at}`,
    type: "message",
    role: "assistant",
    model: body.model,
    content,
    stop_reason: reply.calls ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage,
  };
  if (!body.stream) {
    json(response, 200, message);
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const event = (type: string, fields: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  event("message_start", { message: { ...message, content: [], stop_reason: null } });
  for (const [index, block] of content.entries()) {
    if ("text" in block) {
      event("content_block_start", { index, content_block: { type: "text", text: "" } });
      for (const text of block.text.match(/.{1,4}/gs) ?? []) {
        event("content_block_delta", { index, delta: { type: "text_delta", text } });
      }
    } else {
      event("content_block_start", { index, content_block: { ...block, input: {} } });
      for (const partial_json of JSON.stringify(block.input).match(/.{1,3}/gs) ?? []) {
        event("content_block_delta", { index, delta: { type: "input_json_delta", partial_json } });
      }
    }
    event("content_block_stop", { index });
  }
  event("message_delta", {
    delta: { stop_reason: message.stop_reason, stop_sequence: null },
    usage: { output_tokens: 5 },
  });
  event("message_stop", {});
  response.end();
}

/** A local Messages endpoint that answers by script and refuses what Anthropic refuses. */
export function anthropicEndpoint(script: readonly EndpointReply[]): Promise<LocalEndpoint> {
  return localEndpoint((asked, response, at) => {
    const refuse = (status: number, message: string) =>
      json(response, status, { type: "error", error: { type: "invalid_request_error", message } });
    if (!asked.url.endsWith("/v1/messages")) return refuse(404, `unknown address ${asked.url}`);
    const body = asked.body as Body; // what the provider's package sends; what is wrong in it is what is looked for
    const problem = problemOf(body);
    if (problem) return refuse(400, problem);
    send(response, body, script[Math.min(at, script.length - 1)] ?? {}, at);
  });
}
