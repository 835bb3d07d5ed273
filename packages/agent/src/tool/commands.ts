import { type BaseMessage, coerceMessageLikeToMessage, ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { isRecord } from "@tenon/core";

/** The tool call a message or command answers. */
export interface AnsweredCall {
  readonly id: string;
  readonly name: string;
}

/** Where a command wants to go, as a list; empty when it only updates the state. */
export function gotoOf(command: Command): readonly unknown[] {
  return command.goto === undefined ? [] : [command.goto].flat();
}

/** A copy of a tool message with some fields replaced. */
export function copyToolMessage(
  message: ToolMessage,
  changes: {
    tool_call_id?: string;
    name?: string;
    status?: "success" | "error";
    additional_kwargs?: Record<string, unknown>;
    metadata?: Record<string, unknown>;
  },
): ToolMessage {
  return new ToolMessage({
    content: message.content,
    tool_call_id: message.tool_call_id,
    artifact: message.artifact,
    additional_kwargs: message.additional_kwargs,
    response_metadata: message.response_metadata,
    ...(message.id !== undefined && { id: message.id }),
    ...(message.name !== undefined && { name: message.name }),
    ...(message.status !== undefined && { status: message.status }),
    ...(message.metadata !== undefined && { metadata: message.metadata }),
    ...changes,
  });
}

/** What a command writes to the state, by key. */
export function updateOf(command: Command): Record<string, unknown> {
  if (Array.isArray(command.update)) return Object.fromEntries(command.update.filter(Array.isArray));
  return isRecord(command.update) ? { ...command.update } : {};
}

/**
 * The command with a ToolMessage for its call, since a call without an answer makes the provider refuse the next request.
 * @param change applied to the message that answers the call
 */
export function answerCall(
  command: Command,
  call: AnsweredCall,
  options: { goto?: Command["goto"]; change?: (message: ToolMessage) => ToolMessage } = {},
): Command {
  const update = updateOf(command);
  const given = update.messages === undefined ? [] : [update.messages].flat();
  // message-like values are what LangGraph's message reducer takes too; anything else throws there as here
  const messages = given.map((value) => coerceMessageLikeToMessage(value as BaseMessage));
  const change = options.change ?? ((message: ToolMessage) => message);
  let answered = false;
  const kept = messages.map((message) => {
    if (!ToolMessage.isInstance(message) || message.tool_call_id !== call.id) return message;
    answered = true;
    const { status, name } = message;
    const complete = status !== undefined && name !== undefined;
    return change(
      complete ? message : copyToolMessage(message, { status: status ?? "success", name: name ?? call.name }),
    );
  });
  if (!answered) {
    kept.push(change(new ToolMessage({ content: "Done.", tool_call_id: call.id, name: call.name, status: "success" })));
  }
  const goto = "goto" in options ? options.goto : command.goto;
  return new Command({
    update: { ...update, messages: kept },
    ...(goto !== undefined && { goto }),
    ...(command.graph !== undefined && { graph: command.graph }),
    ...(command.resume !== undefined && { resume: command.resume }),
  });
}
