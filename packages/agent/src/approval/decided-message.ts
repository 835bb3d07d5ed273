import { AIMessage } from "@langchain/core/messages";
import { type CallOrigin, withOrigins } from "../tool/origins.ts";
import { type ApprovalRecord, noteApprovals } from "./approval-records.ts";

/** What an edit changes a call to. */
export interface Edit {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** The model's message with what was decided, edited calls changed everywhere a provider client may read them from. */
export function decidedMessage(
  message: AIMessage,
  edits: ReadonlyMap<string, Edit>,
  records: readonly ApprovalRecord[],
  origins: ReadonlyMap<string, CallOrigin>,
): AIMessage {
  const editOf = (id: unknown) => (typeof id === "string" ? edits.get(id) : undefined);
  const calls = (message.tool_calls ?? []).map((call) => {
    const edit = editOf(call.id);
    return edit ? { ...call, name: edit.name, args: { ...edit.args } } : call;
  });
  const content = Array.isArray(message.content)
    ? message.content.map((block) => {
        const edit = editOf("id" in block ? block.id : undefined);
        if (!edit) return block;
        if (block.type === "tool_use") return { ...block, name: edit.name, input: edit.args };
        return block.type === "tool_call" ? { ...block, name: edit.name, args: edit.args } : block;
      })
    : message.content;
  const { tool_calls: raw, ...additional } = message.additional_kwargs;
  const renamed = [...edits.values()].map(({ name }) => name);
  const metadata = noteApprovals(message.response_metadata, records);
  return new AIMessage({
    content,
    tool_calls: calls,
    // the provider's raw copy has the old calls
    additional_kwargs: raw === undefined || edits.size > 0 ? additional : { ...additional, tool_calls: raw },
    response_metadata: renamed.length > 0 ? withOrigins(metadata, renamed, origins) : metadata,
    ...(message.id !== undefined && { id: message.id }),
    ...(message.name !== undefined && { name: message.name }),
    ...(message.usage_metadata && { usage_metadata: message.usage_metadata }),
    ...(message.invalid_tool_calls && { invalid_tool_calls: message.invalid_tool_calls }),
  });
}
