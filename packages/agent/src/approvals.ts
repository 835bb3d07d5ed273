import { AIMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { getConfig } from "@langchain/langgraph";
import { ConfigError, checkOptions, isRecord } from "@tenon/core";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { checkArguments, describeArgumentIssues } from "./arguments.ts";
import { canPause, type Execution, pause, remember } from "./checkpoint.ts";
import { type ApprovableTool, type ApprovalPolicy, type DecisionKind, type GatedTool, gatedTools } from "./policy.ts";

/** One tool call a person decides about. */
export interface ActionRequest {
  /** The tool's local name. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly description: string;
  readonly toolCallId: string;
  /** Configured server and wire name, for tools of MCP servers. */
  readonly server?: string;
  readonly tool?: string;
}

/** What may be decided about the action at the same position. */
export interface ReviewConfig {
  readonly actionName: string;
  readonly allowedDecisions: readonly DecisionKind[];
  /** JSON Schema of the arguments, where they may be edited. */
  readonly argsSchema?: Readonly<Record<string, unknown>>;
}

/** What a run is interrupted with: LangChain's human-in-the-loop request with a name, an id and the calls' origin. */
export interface ApprovalInterrupt {
  readonly type: "approval";
  readonly approvalId: string;
  readonly actionRequests: readonly ActionRequest[];
  readonly reviewConfigs: readonly ReviewConfig[];
  /** Why the approval is asked for again. */
  readonly error?: string;
}

/** A person's decision about one call. */
export type ApprovalDecision =
  | { readonly type: "approve" }
  | {
      readonly type: "edit";
      readonly editedAction: { readonly name?: string; readonly args: Readonly<Record<string, unknown>> };
    }
  | { readonly type: "reject"; readonly message?: string }
  | { readonly type: "respond"; readonly message: string };

/** What resumes an `ApprovalInterrupt`: one decision per action request, in their order. */
export interface ApprovalResume {
  readonly approvalId?: string;
  readonly decisions: readonly ApprovalDecision[];
}

/** A call and the rule it waits for. */
export interface Gated {
  readonly call: ToolCall & { readonly id: string };
  readonly rule: GatedTool;
}

/** A decision about one call, or what is wrong with it in words for the person. */
export function readDecision(given: unknown, { call, rule }: Gated): ApprovalDecision | { problem: string } {
  if (!isRecord(given)) return { problem: "expected { type, … }" };
  const type = rule.decisions.find((kind) => kind === given.type);
  if (!type) {
    return { problem: `"${String(given.type)}" is not allowed; choose one of ${rule.decisions.join(", ")}` };
  }
  const { message, editedAction } = given;
  switch (type) {
    case "approve":
      return { type };
    case "reject":
      return typeof message === "string" && message.trim() !== "" ? { type, message } : { type };
    case "respond":
      return typeof message === "string" && message.trim() !== ""
        ? { type, message }
        : { problem: "respond needs a message" };
    case "edit": {
      if (!isRecord(editedAction) || !isRecord(editedAction.args)) {
        return { problem: "edit needs editedAction { name, args }" };
      }
      const { name, args } = editedAction;
      if (name !== undefined && name !== call.name) {
        return { problem: `an edit may change arguments, not the tool ("${String(name)}")` };
      }
      const issues = checkArguments(rule.schema, args);
      return issues.length > 0
        ? { problem: `the edited arguments do not fit: ${describeArgumentIssues(issues)}` }
        : { type, editedAction: { name: call.name, args } };
    }
  }
}

/** The decisions in a resume value, or what is wrong with it in words for the person. */
function readResume(value: unknown, approvalId: string, gated: readonly Gated[]): ApprovalDecision[] | string {
  if (!isRecord(value) || !Array.isArray(value.decisions)) {
    return "The answer was not understood: expected { decisions: [ … ] } with one decision per action.";
  }
  if (value.approvalId !== undefined && value.approvalId !== approvalId) {
    return "The answer belonged to another approval; please decide again.";
  }
  const given: readonly unknown[] = value.decisions;
  if (given.length !== gated.length) {
    return `${gated.length} actions wait for a decision, ${given.length} came; please decide about each.`;
  }
  const decisions: ApprovalDecision[] = [];
  for (const [i, item] of gated.entries()) {
    const read = readDecision(given[i], item);
    if ("problem" in read) return `The decision about ${item.call.name} cannot be used: ${read.problem}.`;
    decisions.push(read);
  }
  return decisions;
}

function argsSchemaOf(rule: GatedTool): Record<string, unknown> | undefined {
  if (!rule.decisions.includes("edit")) return undefined;
  if (isInteropZodSchema(rule.schema)) return toJsonSchema(rule.schema) as Record<string, unknown>; // JSON Schema is an object
  return isRecord(rule.schema) ? rule.schema : undefined;
}

/** Evaluates `when` and the descriptions once per pause, so that what runs is what the person saw. */
async function reviewed(execution: Execution, calls: readonly Gated[]): Promise<{ gated: Gated[]; texts: string[] }> {
  const asked = await remember(execution, "approvals", async () => {
    const texts: Array<string | null> = [];
    for (const { call, rule } of calls) {
      if (rule.when && !(await rule.when(call.args))) texts.push(null);
      else texts.push(typeof rule.description === "function" ? await rule.description(call.args) : rule.description);
    }
    return texts;
  });
  const gated = calls.filter((_, i) => typeof asked[i] === "string");
  return { gated, texts: asked.filter((text) => typeof text === "string") };
}

function decide(execution: Execution, messageId: string, gated: readonly Gated[], texts: readonly string[]) {
  const actionRequests = gated.map(({ call, rule }, i): ActionRequest => {
    const origin = rule.server !== undefined && rule.tool !== undefined && { server: rule.server, tool: rule.tool };
    return { name: call.name, args: call.args, description: texts[i] ?? "", toolCallId: call.id, ...origin };
  });
  const reviewConfigs = gated.map(({ call, rule }): ReviewConfig => {
    const argsSchema = argsSchemaOf(rule);
    return { actionName: call.name, allowedDecisions: rule.decisions, ...(argsSchema && { argsSchema }) };
  });
  let error: string | undefined;
  for (let attempt = 0; ; attempt += 1) {
    const approvalId = `${messageId}:${attempt}`;
    const payload: ApprovalInterrupt = {
      type: "approval",
      approvalId,
      actionRequests,
      reviewConfigs,
      ...(error !== undefined && { error }),
    };
    const read = readResume(pause(execution, messageId, payload), approvalId, gated);
    // a throw would be replayed on every later resume, so a bad answer is asked for again
    if (typeof read !== "string") return read;
    error = read;
  }
}

/** The model's message with edited arguments, everywhere a provider client may read them from. */
function withArgs(message: AIMessage, edits: ReadonlyMap<string, Readonly<Record<string, unknown>>>): AIMessage {
  const editOf = (id: unknown) => (typeof id === "string" ? edits.get(id) : undefined);
  const calls = (message.tool_calls ?? []).map((call) => ({ ...call, args: { ...(editOf(call.id) ?? call.args) } }));
  const content = Array.isArray(message.content)
    ? message.content.map((block) => {
        const args = editOf("id" in block ? block.id : undefined);
        if (!args) return block;
        if (block.type === "tool_use") return { ...block, input: args };
        return block.type === "tool_call" ? { ...block, args } : block;
      })
    : message.content;
  const { tool_calls: _raw, ...additional } = message.additional_kwargs; // the provider's raw copy has the old arguments
  return new AIMessage({
    content: content as AIMessage["content"], // same blocks, two of their fields replaced
    tool_calls: calls,
    additional_kwargs: additional,
    response_metadata: message.response_metadata,
    ...(message.id !== undefined && { id: message.id }),
    ...(message.name !== undefined && { name: message.name }),
    ...(message.usage_metadata && { usage_metadata: message.usage_metadata }),
    ...(message.invalid_tool_calls && { invalid_tool_calls: message.invalid_tool_calls }),
  });
}

function answersOf(gated: readonly Gated[], decisions: readonly ApprovalDecision[]): ToolMessage[] {
  return gated.flatMap(({ call }, i) => {
    const decision = decisions[i];
    const fields = { tool_call_id: call.id, name: call.name };
    if (decision?.type === "respond") {
      return [new ToolMessage({ ...fields, content: decision.message, status: "success" })];
    }
    if (decision?.type !== "reject") return [];
    const reason = decision.message ? ` Reason: ${decision.message}` : "";
    const content = `The person rejected this call; it was not carried out.${reason}`;
    return [new ToolMessage({ ...fields, content, status: "error" })];
  });
}

/**
 * Asks a person before tools run. All calls of one turn that need an approval are one interrupt with LangChain's
 * human-in-the-loop payload (`ApprovalInterrupt`); each gets its own decision, so approved calls and calls that need none run
 * although a sibling was rejected. Malformed answers and edits that do not fit the tool's schema are asked for again with
 * `error`. Nothing in a run's context can switch it off.
 *
 * @param tools the agent's tools; those of `mcpTools` can be named `"server/wireTool"` in the policy
 * @param policy where a tool has no entry, its annotations decide: destructive or open-world tools that are not read-only are
 *   asked about
 * @param options.derive `false` leaves tools without an entry unasked
 * @throws ConfigError `code: "approval_policy"` or `"approval_decisions"` for a policy that cannot be meant
 * @example
 * approvals(tools, { "order/process_refund": { decisions: ["approve", "reject"], when: (args) => Number(args.amount) >= 500 } })
 */
export function approvals(
  tools: readonly ApprovableTool[],
  policy: ApprovalPolicy = {},
  options: { derive?: boolean } = {},
): AgentMiddleware {
  checkOptions(options, ["derive"], "approvals(tools, policy, options)");
  const rules = gatedTools(tools, policy, options.derive ?? true);
  return createMiddleware({
    name: "TenonApprovals",
    afterModel: {
      canJumpTo: ["model"],
      hook: async (state, runtime) => {
        const at = state.messages.findLastIndex((item) => AIMessage.isInstance(item));
        const message = state.messages[at];
        // another middleware may have answered some of the calls already
        const answered = state.messages.slice(at + 1).map((item) => ToolMessage.isInstance(item) && item.tool_call_id);
        const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
        const waiting = calls.filter((call) => !answered.includes(call.id ?? ""));
        const candidates = waiting.flatMap((call): Gated[] => {
          const rule = rules.get(call.name);
          if (!rule) return [];
          const args = rule.toWire?.(call.args) ?? call.args; // what is judged and shown is what would be sent
          return [{ call: { ...call, args, id: call.id ?? "" }, rule }];
        });
        if (!AIMessage.isInstance(message) || candidates.length === 0) return undefined;
        const execution: Execution = { ...getConfig(), configurable: runtime.configurable };
        if (!canPause(execution)) {
          throw new ConfigError(
            `${candidates.map(({ call }) => call.name).join(", ")} needs an approval, but this run is not saved and cannot ` +
              "wait for one. Give the agent a checkpointer, and a thread_id to each run.",
            { code: "no_checkpointer" },
          );
        }
        const { gated, texts } = await reviewed(execution, candidates);
        if (gated.length === 0) return undefined;
        const decisions = decide(execution, message.id ?? "message", gated, texts);
        const edits = new Map(
          gated.flatMap(({ call }, i) => {
            const decision = decisions[i];
            return decision?.type === "edit" ? [[call.id, decision.editedAction.args] as const] : [];
          }),
        );
        const answers = answersOf(gated, decisions);
        const next = [...(edits.size > 0 ? [withArgs(message, edits)] : []), ...answers];
        // with calls left to run the router finds them; with none it would leave the agent instead of asking the model
        return answers.length === waiting.length
          ? { messages: next, jumpTo: "model" as const }
          : next.length > 0
            ? { messages: next }
            : undefined;
      },
    },
  });
}
