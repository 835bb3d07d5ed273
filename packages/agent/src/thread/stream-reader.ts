import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isRecord } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import type { RunnableAgent } from "../question/open-questions.ts";
import { type McpToolMetadata, mcpMetadata } from "../tool/mcp-tool.ts";
import type { McpArtifact } from "../tool/messages.ts";
import { type CallOrigin, messagesOf, type ThreadEvent } from "./events.ts";

/** The stream modes of LangGraph that a reader understands. */
export const STREAM_MODES = ["messages", "tools", "updates", "custom", "values"] as const;

/** Turns the chunks of an agent's stream into events, each said once although LangGraph repeats some after a pause. */
export interface EventReader {
  /**
   * Everything already in the state is old news.
   * @param suspended ids of the calls that have begun and wait for a person
   */
  begin(values: unknown, suspended?: readonly string[]): void;
  read(mode: string, chunk: unknown): ThreadEvent[];
}

function originsOf(agent: RunnableAgent): ReadonlyMap<string, McpToolMetadata> {
  const found = new Map<string, McpToolMetadata>();
  for (const tool of agent.options?.tools ?? []) {
    const mcp = isRecord(tool) ? mcpMetadata(tool) : undefined;
    if (isRecord(tool) && typeof tool.name === "string" && mcp) found.set(tool.name, mcp);
  }
  return found;
}

/** The messages of one kind in a node's update, however deep: a node may give a list of updates, or pairs of key and value. */
function messagesIn<T extends BaseMessage>(update: unknown, is: (value: unknown) => value is T): T[] {
  if (is(update)) return [update];
  if (Array.isArray(update)) return update.flatMap((item) => messagesIn(item, is));
  return isRecord(update) ? messagesIn(update.messages, is) : [];
}

const isTool = (value: unknown): value is ToolMessage => ToolMessage.isInstance(value);
const isAI = (value: unknown): value is AIMessage => AIMessage.isInstance(value);

/** A tool's input as LangChain's callbacks give it: the arguments as JSON text, or the only text of a simple tool. */
function argsOf(input: unknown): Record<string, unknown> {
  if (isRecord(input)) return input;
  try {
    const parsed: unknown = JSON.parse(String(input));
    if (isRecord(parsed)) return parsed;
  } catch {
    // not JSON: a tool that takes one text
  }
  return { input };
}

/** What a model thought, as its provider tells it: beside the text (DeepSeek) or as a block (Anthropic, OpenAI). */
function reasoningOf(message: AIMessage): string {
  const beside = message.additional_kwargs.reasoning_content;
  if (typeof beside === "string") return beside;
  if (!Array.isArray(message.content)) return "";
  return message.content
    .map((block) => (block.type === "thinking" ? block.thinking : block.type === "reasoning" ? block.reasoning : ""))
    .filter((text) => typeof text === "string")
    .join("");
}

/** A model or an agent that runs inside a tool does not speak to the person. */
function insideTool(meta: unknown): boolean {
  if (!isRecord(meta)) return false;
  return meta.langgraph_node === "tools" || String(meta.langgraph_checkpoint_ns ?? "").startsWith("tools:");
}

/** Channels that LangChain and LangGraph keep for themselves. */
export function isPrivateKey(key: string): boolean {
  return key === "jumpTo" || key.startsWith("_") || key.startsWith("lg_") || key.includes(":");
}

/** Equal values have equal prints; a value that is no JSON is always news. */
function printOf(value: unknown): string {
  try {
    return digest(value);
  } catch {
    return "";
  }
}

/** A reader for one conversation with `agent`. */
export function eventReader(agent: RunnableAgent): EventReader {
  const originOf = originsOf(agent);
  const known = new Set<string>(); // messages that are old or complete
  const spoken = new Set<string>(); // messages with text or reasoning
  const callOf = new Map<string, string>(); // message and index of a piece → call
  const begun = new Set<string>();
  const complete = new Set<string>();
  const started = new Set<string>();
  const ended = new Set<string>();
  const prints = new Map<string, string>();

  function origin(name: string): CallOrigin {
    const mcp = originOf.get(name);
    return mcp ? { name, server: mcp.server, tool: mcp.tool } : { name };
  }

  function begin(messageId: string, toolCallId: string, name: string): ThreadEvent[] {
    if (begun.has(toolCallId)) return [];
    begun.add(toolCallId);
    return [{ type: "call-start", toolCallId, messageId, ...origin(name) }];
  }

  /** Pieces of calls; a piece is told apart by its index, and only the first has an id and a name. */
  function pieces(message: AIMessage, messageId: string): ThreadEvent[] {
    if (!("tool_call_chunks" in message) || !Array.isArray(message.tool_call_chunks)) return [];
    return message.tool_call_chunks.flatMap((piece): ThreadEvent[] => {
      const place = `${messageId} ${piece.index ?? piece.id ?? ""}`;
      if (typeof piece.id === "string" && piece.id !== "") callOf.set(place, piece.id);
      const toolCallId = callOf.get(place);
      if (toolCallId === undefined || complete.has(toolCallId)) return [];
      const first = piece.name ? begin(messageId, toolCallId, piece.name) : [];
      const delta = typeof piece.args === "string" ? piece.args : "";
      return delta === "" || !begun.has(toolCallId) ? first : [...first, { type: "call-args", toolCallId, delta }];
    });
  }

  function speech(chunk: unknown): ThreadEvent[] {
    const [message, meta] = Array.isArray(chunk) ? chunk : [];
    if (!isAI(message) || (message.id !== undefined && known.has(message.id)) || insideTool(meta)) return [];
    const messageId = message.id ?? "message";
    const events: ThreadEvent[] = [];
    const thought = reasoningOf(message);
    if (thought !== "") events.push({ type: "reasoning", messageId, delta: thought });
    if (message.text !== "") events.push({ type: "text", messageId, delta: message.text });
    if (events.length > 0) spoken.add(messageId);
    return [...events, ...pieces(message, messageId)];
  }

  function completed(message: AIMessage): ThreadEvent[] {
    const messageId = message.id ?? "message";
    const events: ThreadEvent[] = [];
    if (spoken.delete(messageId)) events.push({ type: "text-end", messageId });
    if (message.id !== undefined) known.add(message.id);
    const calls = (message.tool_calls ?? []).map((call) => ({ ...call, problem: undefined }));
    const broken = (message.invalid_tool_calls ?? []).map(({ id, name = "", error }) => {
      return { id, name, args: {}, problem: error ?? "the arguments are no JSON object" };
    });
    for (const { id, name, args, problem } of [...calls, ...broken]) {
      if (id === undefined || complete.has(id)) continue;
      complete.add(id);
      events.push(...begin(messageId, id, name));
      events.push({ type: "call-end", toolCallId: id, ...origin(name), args, ...(problem && { problem }) });
    }
    return events;
  }

  function start(chunk: unknown): ThreadEvent[] {
    if (!isRecord(chunk) || chunk.event !== "on_tool_start") return [];
    const { toolCallId, name, input } = chunk;
    if (typeof toolCallId !== "string" || started.has(toolCallId)) return [];
    started.add(toolCallId);
    return [{ type: "tool-start", toolCallId, ...origin(String(name)), args: argsOf(input) }];
  }

  function answered(message: ToolMessage): ThreadEvent[] {
    const { tool_call_id: toolCallId, name, text, artifact } = message;
    if (ended.has(toolCallId)) return [];
    ended.add(toolCallId);
    const status = message.status ?? "success";
    // only mcpTools gives a tool an origin, and its artifacts have this shape
    const made = name !== undefined && originOf.has(name) && isRecord(artifact) && (artifact as unknown as McpArtifact);
    return [
      {
        type: "tool-end",
        toolCallId,
        ...(name !== undefined && origin(name)),
        status,
        text,
        ...(made && { artifact: made }),
      },
    ];
  }

  function updates(chunk: unknown): ThreadEvent[] {
    if (!isRecord(chunk)) return [];
    return Object.values(chunk).flatMap((update) => [
      ...messagesIn(update, isAI).flatMap(completed),
      ...messagesIn(update, isTool).flatMap(answered),
    ]);
  }

  function custom(chunk: unknown): ThreadEvent[] {
    if (!isRecord(chunk) || (chunk.type !== "mcp_progress" && chunk.type !== "mcp_log")) return [];
    const type = chunk.type === "mcp_progress" ? "progress" : "log";
    return [{ ...chunk, type } as unknown as ThreadEvent]; // McpStreamChunk and these two events differ in `type` only
  }

  /** The keys whose values are not as they were when last looked at. */
  function changed(values: unknown): Record<string, unknown> {
    if (!isRecord(values)) return {};
    const entries = Object.entries(values).filter(([key, value]) => {
      if (key === "messages" || isPrivateKey(key) || value === undefined) return false;
      const print = printOf(value);
      if (print !== "" && prints.get(key) === print) return false;
      prints.set(key, print);
      return true;
    });
    return Object.fromEntries(entries);
  }

  function state(chunk: unknown): ThreadEvent[] {
    const values = changed(chunk);
    return Object.keys(values).length > 0 ? [{ type: "state", values }] : [];
  }

  const readers: Record<string, (chunk: unknown) => ThreadEvent[]> = {
    messages: speech,
    tools: start,
    updates,
    custom,
    values: state,
  };
  return {
    begin(values, suspended = []) {
      changed(values);
      for (const id of suspended) started.add(id);
      for (const message of messagesOf(values)) {
        if (message.id !== undefined) known.add(message.id);
        if (isTool(message)) ended.add(message.tool_call_id);
        if (isAI(message)) for (const { id } of message.tool_calls ?? []) if (id !== undefined) complete.add(id);
      }
    },
    read: (mode, chunk) => readers[mode]?.(chunk) ?? [],
  };
}
