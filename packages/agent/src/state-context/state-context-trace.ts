import { createHash } from "node:crypto";
import type { BaseMessage } from "@langchain/core/messages";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph";
import { ConfigError, isRecord } from "@tenon/core";
import { canonicalJson, checkOptions } from "@tenon/core/internal";
import { messagesOf } from "../thread/events.ts";
import { boundValue } from "../thread/stream-bounds.ts";
import { isPrivateKey } from "../thread/stream-reader.ts";

const hex16 = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

function plainMessage(message: BaseMessage): object {
  return {
    type: message.type,
    id: message.id,
    content: message.content,
    ...(AIMessage.isInstance(message) && {
      calls: (message.tool_calls ?? []).map(({ id, name, args }) => ({ id, name, args })),
    }),
    ...(ToolMessage.isInstance(message) && { call: message.tool_call_id, status: message.status }),
  };
}

/**
 * A thread's state as canonical JSON (RFC 8785): every channel but those LangChain and LangGraph keep for themselves, messages
 * by what they say. The same before and after a checkpoint for a state that is JSON.
 */
function canonicalState(state: unknown): string {
  const entries = Object.entries(isRecord(state) ? state : {}).flatMap(([key, value]): Array<[string, unknown]> => {
    if (isPrivateKey(key) || value === undefined) return [];
    const messages = key === "messages" && Array.isArray(value) && messagesOf(state).map(plainMessage);
    return [[key, boundValue(messages || value, Number.POSITIVE_INFINITY).value]];
  });
  // half a surrogate pair in a message is no reason to have no trace
  const text = JSON.stringify(Object.fromEntries(entries)).replace(/\\ud[89a-f][0-9a-f]{2}/g, "\\ufffd");
  return canonicalJson(JSON.parse(text));
}

/**
 * The trace id of a state: 32 hexadecimal digits, as W3C trace context wants them. The first half names the thread, the second
 * is the beginning of the SHA-256 of the canonical state.
 */
export function traceIdOf(state: unknown, threadId = ""): string {
  return `${hex16(`thread ${threadId}`)}${hex16(canonicalState(state))}`;
}

/** The saved step of a thread that a trace id names. */
export interface TracedState {
  readonly threadId: string;
  readonly checkpointId: string;
  /** The state, without the channels that LangChain and LangGraph keep for themselves. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly checkpoint: CheckpointTuple;
}

/** Checkpoints that are looked at when nothing else is said. */
const LIMIT = 10_000;

/**
 * The newest checkpoint whose state has the trace id, or undefined. Without `threadId` all threads of the saver are gone
 * through, newest checkpoints first within each; `limit` (default 10000) ends the search.
 *
 * @throws ConfigError `code: "trace_id"` for a text that is no trace id
 * @example
 * const found = await stateByTrace(saver, traceIdFromALog);
 */
export async function stateByTrace(
  saver: Pick<BaseCheckpointSaver, "list">,
  traceId: string,
  options: { readonly threadId?: string; readonly limit?: number } = {},
): Promise<TracedState | undefined> {
  checkOptions(options, ["threadId", "limit"], "stateByTrace(saver, traceId, options)");
  if (!/^[0-9a-f]{32}$/.test(traceId)) {
    throw new ConfigError(`A trace id is 32 hexadecimal digits in lower case; given ${JSON.stringify(traceId)}`, {
      code: "trace_id",
    });
  }
  const { threadId, limit = LIMIT } = options;
  const heads = new Map<string, boolean>();
  const ofThread = (id: string): boolean => {
    const known = heads.get(id) ?? traceId.startsWith(hex16(`thread ${id}`));
    heads.set(id, known);
    return known;
  };
  const config = { configurable: threadId === undefined ? {} : { thread_id: threadId } };
  for await (const tuple of saver.list(config, { limit })) {
    const { thread_id: thread, checkpoint_id: checkpointId } = tuple.config.configurable ?? {};
    if (typeof thread !== "string" || typeof checkpointId !== "string" || !ofThread(thread)) continue;
    const channels = Object.entries(tuple.checkpoint.channel_values);
    const values = Object.fromEntries(channels.filter(([key, value]) => !isPrivateKey(key) && value !== undefined));
    if (traceIdOf(values, thread) === traceId) return { threadId: thread, checkpointId, values, checkpoint: tuple };
  }
  return undefined;
}
