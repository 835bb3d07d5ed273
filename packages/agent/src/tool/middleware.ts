import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ToolInputParsingException } from "@langchain/core/tools";
import { type Command, END, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import { ConfigError, type ConnectionError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type AgentMiddleware, createMiddleware, ToolInvocationError } from "langchain";
import { type ApprovalRecord, approvalOf } from "../approval/approval-records.ts";
import { markGuarded, rethrowParked } from "./checkpoint.ts";
import { type AnsweredCall, answerCall, copyToolMessage, gotoOf } from "./commands.ts";
import { checkToolErrors, endRun, endsRun, rootOf, type ToolErrors } from "./failures.ts";
import { failureOf } from "./messages.ts";
import { hasNotes, notedOrigin, noteOrigins, originsOf } from "./origins.ts";
import { Siblings } from "./siblings.ts";
import { type ServersOfAgent, waitFor, waitForAny } from "./waiting-calls.ts";

/** Options of `mcpMiddleware`. */
export interface McpMiddlewareOptions {
  /**
   * What happens when a call fails: `"return"` (default) gives the model a message with status `"error"`, `"throw"` ends the
   * run with that error. Tools that say themselves what happens (`mcpTools(client, { toolErrors })`) keep to that.
   */
  toolErrors?: ToolErrors;
  /**
   * The client whose tools the agent has: `createClient`'s or a `MultiServerMCPClient`. It tells a server that cannot be
   * reached, whose calls wait, from one that does not offer a tool any more, of which the model is told. Default: none, and a
   * call of either waits, since waiting loses nothing.
   */
  client?: ServersOfAgent;
}

const END_MARK = "tenon_end_run";

function errorText(error: unknown, call: AnsweredCall): string {
  // ToolInvocationError's own message holds a stack trace with paths
  if (ToolInvocationError.isInstance(error)) return `Invalid arguments for ${call.name}: ${error.toolError.message}`;
  if (error instanceof ToolInputParsingException) return `Invalid arguments for ${call.name}: ${error.message}`;
  if (error instanceof Error) return `${call.name} failed: ${error.message || error.name}`;
  return `${call.name} failed: ${String(error)}`;
}

function errorMessage(error: unknown, call: AnsweredCall): ToolMessage {
  return new ToolMessage({
    content: errorText(error, call),
    tool_call_id: call.id,
    name: call.name,
    status: "error",
  });
}

/** Says on the message that answers a call what a person had decided about the call. */
function noting(approval: ApprovalRecord | undefined): (message: ToolMessage) => ToolMessage {
  if (!approval) return (message) => message;
  return (message) => copyToolMessage(message, { metadata: { ...message.metadata, approval } });
}

function direct(command: Command, call: AnsweredCall, note: ReturnType<typeof noting>): Command | ConfigError {
  if (command.graph !== undefined) return command; // meant for a graph around this agent
  const goto = gotoOf(command);
  const elsewhere = goto.filter((target) => target !== END);
  if (elsewhere.length > 0) {
    const names = elsewhere.map((target) => (typeof target === "string" ? `"${target}"` : "a Send"));
    return new ConfigError(
      `${call.name} was answered with a Command that goes to ${names.join(", ")}. An agent made by createAgent has no such ` +
        'step to go to: only "__end__" works there; use a StateGraph of your own for other targets. The tool itself may have run.',
      { code: "goto_unsupported" },
    );
  }
  if (goto.length === 0) return answerCall(command, call, { change: note });
  return answerCall(command, call, {
    goto: undefined,
    change: (message) =>
      copyToolMessage(note(message), { additional_kwargs: { ...message.additional_kwargs, [END_MARK]: true } }),
  });
}

function endMarked(messages: readonly BaseMessage[]): ToolMessage[] {
  const found: ToolMessage[] = [];
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (HumanMessage.isInstance(message)) break; // a mark before it belonged to an earlier turn
    if (ToolMessage.isInstance(message) && message.additional_kwargs[END_MARK] === true) found.push(message);
  }
  return found;
}

function unmarked(message: ToolMessage): ToolMessage {
  const { [END_MARK]: _mark, ...rest } = message.additional_kwargs;
  return copyToolMessage(message, { additional_kwargs: rest });
}

/** The message that has the call: the latest, since calls are answered before the model is asked again. */
function callingMessage(state: unknown): AIMessage | undefined {
  const messages = isRecord(state) && Array.isArray(state.messages) ? state.messages : [];
  const last: unknown = messages.findLast((message) => AIMessage.isInstance(message));
  return AIMessage.isInstance(last) ? last : undefined;
}

/**
 * Makes `createAgent` do what interceptors and durable questions need. Put it first in the list, so that it is outermost:
 *
 * - a Command with `goto: "__end__"` ends the run after the calls of the same turn have finished;
 * - a Command without a message for its call gets one; a `goto` to any other step is an error message;
 * - an interrupt cannot be swallowed by a retrying or catching middleware further in;
 * - what a person decided about a call (`approvals`) is on the call's message, in `metadata.approval`;
 * - an error of a tool becomes a message with status `"error"`, or ends the run (`toolErrors: "throw"`);
 * - a call that the model chose earlier, of a tool that the agent was made without because its server cannot be reached now, ends
 *   the run with a ConnectionError `code: "call_waits"`, which names the server: nothing is told to the model, and the call runs
 *   when the thread is continued by an agent that has the tool. With `approvals`, the same goes for what it has to ask about.
 *
 * @throws ConfigError `code: "unknown_option"` for an option nobody reads, `"invalid_option"`
 */
export function mcpMiddleware(options: McpMiddlewareOptions = {}): AgentMiddleware {
  checkOptions(options, ["toolErrors", "client"], "mcpMiddleware(options)");
  checkToolErrors(options.toolErrors, "mcpMiddleware(options)");
  const { client } = options;
  const throwing = options.toolErrors === "throw";
  const siblings = new Siblings();

  async function waits(call: AnsweredCall, state: unknown): Promise<ConnectionError | undefined> {
    const message = callingMessage(state);
    const { server, tool } = approvalOf({ state, toolCallId: call.id }) ?? {};
    const approved = server !== undefined && tool !== undefined ? { server, tool } : undefined;
    const origin = notedOrigin(message, call.name) ?? approved;
    if (origin) return waitFor({ name: call.name, ...origin }, { client });
    return hasNotes(message) ? undefined : waitForAny(call.name, client); // else the model made it up
  }

  return createMiddleware({
    name: "TenonMcp",
    beforeModel: {
      canJumpTo: ["end"],
      hook: (state) => {
        const marked = endMarked(state.messages);
        if (marked.length === 0) return undefined;
        return { jumpTo: "end" as const, messages: marked.map(unmarked) };
      },
    },
    wrapModelCall: async (request, handler) => {
      const answer = await handler(request);
      noteOrigins(answer, originsOf(request.tools));
      return answer;
    },
    wrapToolCall: async (request, handler) => {
      const call = { id: request.toolCall.id ?? "", name: request.toolCall.name };
      const note = noting(approvalOf({ state: request.state, toolCallId: call.id }));
      markGuarded(request.runtime, call.id);
      const held = request.tool === undefined ? await waits(call, request.state) : undefined;
      if (held) {
        await siblings.over(request.runtime); // the end of the run would cut them off
        return endRun(held);
      }
      let outcome: ToolMessage | Command;
      try {
        outcome = await siblings.run(request.runtime, () => handler(request));
      } catch (error) {
        rethrowParked(request.runtime, call.id);
        const root = rootOf(error);
        if (isGraphBubbleUp(root) || request.runtime.signal?.aborted) throw root;
        return throwing ? endRun(root) : note(errorMessage(root, call));
      }
      rethrowParked(request.runtime, call.id); // something further in turned the interrupt into a result
      if (endsRun(outcome)) return outcome;
      if (!isCommand(outcome)) {
        const failure = throwing ? failureOf(outcome) : undefined;
        return failure === undefined ? note(outcome) : endRun(failure);
      }
      const directed = direct(outcome, call, note);
      if (!(directed instanceof ConfigError)) return directed;
      return throwing ? endRun(directed) : errorMessage(directed, call);
    },
  });
}
