import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isRecord } from "@tenon/core";
import type { Question, RunnableAgent } from "./open-questions.ts";
import { type McpToolMetadata, mcpMetadata } from "./tools.ts";

/** What happens while an agent runs. */
export type RunEvent =
  /** The model writes: a piece of its text. */
  | { readonly type: "text"; readonly delta: string }
  /** A tool begins. Once per call, also when the call is suspended and continued. */
  | {
      readonly type: "tool-start";
      readonly toolCallId: string;
      readonly name: string;
      readonly server?: string;
      readonly tool?: string;
      readonly args: Readonly<Record<string, unknown>>;
    }
  | {
      readonly type: "progress";
      readonly toolCallId?: string;
      readonly server: string;
      readonly tool: string;
      readonly progress: number;
      readonly total?: number;
      readonly message?: string;
      readonly percent?: number;
    }
  | {
      readonly type: "log";
      readonly toolCallId?: string;
      readonly server: string;
      readonly tool: string;
      readonly level: string;
      readonly logger?: string;
      readonly data: unknown;
    }
  /** A call has its answer; without a `tool-start` when a person rejected the call or answered for the tool. */
  | {
      readonly type: "tool-end";
      readonly toolCallId: string;
      readonly name?: string;
      readonly status: "success" | "error";
      readonly text: string;
    }
  /** A person is about to be asked. */
  | { readonly type: "question"; readonly question: Question }
  /** These questions were answered elsewhere while the person here was thinking; their answers were dropped. */
  | { readonly type: "superseded"; readonly questions: readonly Question[] };

/** The messages of a thread's state. */
export function messagesOf(values: unknown): BaseMessage[] {
  const messages = isRecord(values) ? values.messages : undefined;
  return Array.isArray(messages) ? messages : [];
}

function origins(agent: RunnableAgent): ReadonlyMap<string, McpToolMetadata> {
  const found = new Map<string, McpToolMetadata>();
  for (const tool of agent.options?.tools ?? []) {
    const mcp = isRecord(tool) ? mcpMetadata(tool) : undefined;
    if (isRecord(tool) && typeof tool.name === "string" && mcp) found.set(tool.name, mcp);
  }
  return found;
}

function toolMessagesIn(update: unknown): ToolMessage[] {
  if (ToolMessage.isInstance(update)) return [update];
  if (Array.isArray(update)) return update.flatMap(toolMessagesIn);
  return isRecord(update) ? toolMessagesIn(update.messages) : [];
}

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

/** Turns the chunks of an agent's stream into events, each said once although LangGraph repeats some after a pause. */
export interface EventReader {
  /** Everything already in the state is old news. */
  begin(values: unknown): void;
  read(mode: string, chunk: unknown): RunEvent[];
}

/** A reader for one conversation with `agent`. */
export function eventReader(agent: RunnableAgent): EventReader {
  const originOf = origins(agent);
  const known = new Set<string>();
  const started = new Set<string>();
  const ended = new Set<string>();

  function text(chunk: unknown): RunEvent[] {
    const [message, meta] = Array.isArray(chunk) ? chunk : [];
    if (!AIMessage.isInstance(message) || (message.id !== undefined && known.has(message.id))) return [];
    // a model that runs inside a tool does not speak to the person
    if (isRecord(meta) && meta.langgraph_node === "tools") return [];
    return message.text === "" ? [] : [{ type: "text", delta: message.text }];
  }

  function start(chunk: unknown): RunEvent[] {
    if (!isRecord(chunk) || chunk.event !== "on_tool_start") return [];
    const { toolCallId, name, input } = chunk;
    if (typeof toolCallId !== "string" || started.has(toolCallId)) return [];
    started.add(toolCallId);
    const mcp = originOf.get(String(name));
    const origin = mcp && { server: mcp.server, tool: mcp.tool };
    return [{ type: "tool-start", toolCallId, name: String(name), ...origin, args: argsOf(input) }];
  }

  function ends(chunk: unknown): RunEvent[] {
    if (!isRecord(chunk)) return [];
    return Object.values(chunk)
      .flatMap(toolMessagesIn)
      .flatMap((message): RunEvent[] => {
        const toolCallId = message.tool_call_id;
        if (ended.has(toolCallId)) return [];
        ended.add(toolCallId);
        const status = message.status ?? "success";
        return [
          { type: "tool-end", toolCallId, ...(message.name && { name: message.name }), status, text: message.text },
        ];
      });
  }

  function custom(chunk: unknown): RunEvent[] {
    if (!isRecord(chunk) || (chunk.type !== "mcp_progress" && chunk.type !== "mcp_log")) return [];
    const type = chunk.type === "mcp_progress" ? "progress" : "log";
    return [{ ...chunk, type } as unknown as RunEvent]; // McpStreamChunk and these two events differ in `type` only
  }

  const readers: Record<string, (chunk: unknown) => RunEvent[]> = {
    messages: text,
    tools: start,
    updates: ends,
    custom,
  };
  return {
    begin(values) {
      for (const message of messagesOf(values)) {
        if (message.id !== undefined) known.add(message.id);
        if (ToolMessage.isInstance(message)) ended.add(message.tool_call_id);
      }
    },
    read: (mode, chunk) => readers[mode]?.(chunk) ?? [],
  };
}
