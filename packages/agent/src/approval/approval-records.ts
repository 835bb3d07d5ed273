import { AIMessage } from "@langchain/core/messages";
import { isRecord } from "@tenon/core";
import type { Decider } from "./decisions.ts";
import type { DecisionKind } from "./policy.ts";

/** What a person decided about one tool call. */
export interface ApprovalRecord {
  readonly toolCallId: string;
  /** The tool the model called, by its local name. */
  readonly name: string;
  /** Configured server and wire name, for tools of MCP servers. */
  readonly server?: string;
  readonly tool?: string;
  readonly decision: DecisionKind;
  /** As the resume value said. */
  readonly decidedBy?: Decider;
  /** When the decision was asked for and when it was taken; ISO 8601. */
  readonly askedAt: string;
  readonly decidedAt: string;
  /** The reason of a reject, the text of a respond. */
  readonly message?: string;
  /** What the model had asked for, where the call was edited. */
  readonly proposed?: { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
}

const KEY = "tenon_approvals"; // in the response metadata, which goes to no provider

function notedIn(metadata: unknown): Readonly<Record<string, ApprovalRecord>> {
  const noted = isRecord(metadata) ? metadata[KEY] : undefined;
  return isRecord(noted) ? (noted as Record<string, ApprovalRecord>) : {}; // only noteApprovals writes it
}

/** Response metadata with what was decided about the message's calls. */
export function noteApprovals(
  metadata: Record<string, unknown>,
  records: readonly ApprovalRecord[],
): Record<string, unknown> {
  const added = Object.fromEntries(records.map((record) => [record.toolCallId, record]));
  return { ...metadata, [KEY]: { ...notedIn(metadata), ...added } };
}

function messagesIn(state: unknown): readonly unknown[] {
  return isRecord(state) && Array.isArray(state.messages) ? state.messages : [];
}

/**
 * What was decided in a conversation, oldest first.
 * @param state a thread's values, or the state a tool or middleware sees
 */
export function approvalsOf(state: unknown): ApprovalRecord[] {
  return messagesIn(state).flatMap((message) =>
    AIMessage.isInstance(message) ? Object.values(notedIn(message.response_metadata)) : [],
  );
}

/**
 * What was decided about the call that an interceptor or tool works on; undefined when nobody was asked.
 * @example
 * const who: AgentInterceptor = (request, next) =>
 *   next(request.with({ headers: { "x-approved-by": String(approvalOf(request.runtime)?.decidedBy ?? "") } }));
 */
export function approvalOf(runtime: {
  readonly state?: unknown;
  readonly toolCallId?: string;
}): ApprovalRecord | undefined {
  const { state, toolCallId } = runtime;
  if (toolCallId === undefined) return undefined;
  // the newest call of that id: some endpoints number the calls of each turn from zero, and an older one may have been approved
  const message = messagesIn(state).findLast(
    (one) => AIMessage.isInstance(one) && one.tool_calls?.some(({ id }) => id === toolCallId) === true,
  );
  return AIMessage.isInstance(message) ? notedIn(message.response_metadata)[toolCallId] : undefined;
}
