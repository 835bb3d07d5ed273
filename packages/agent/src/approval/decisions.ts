import type { ToolCall } from "@langchain/core/messages/tool";
import { isRecord } from "@tenon/core";
import { checkArguments, describeWrong } from "../tool/arguments.ts";
import type { DecisionKind, GatedTool } from "./policy.ts";

/** One tool call a person decides about. */
export interface ActionRequest {
  /** The tool's local name. */
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly args: Readonly<Record<string, unknown>>;
  /** What the person reads. */
  readonly description: string;
  /** The model's id of the call. */
  readonly toolCallId: string;
  /** Configured server and wire name, for tools of MCP servers. */
  readonly server?: string;
  /** The tool's name on the wire. */
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
  /** When it was asked, this time; ISO 8601. */
  readonly askedAt: string;
  /** An answer after it is refused, and the approval is asked for again. */
  readonly expiresAt?: string;
  /** Why the approval is asked for again. */
  readonly error?: string;
  /** The trace it was asked in, which the answer's run goes on with. */
  readonly trace?: { readonly traceparent: string; readonly tracestate?: string };
}

/** Who decided: a name, or what identifies a person, as the application knows it. */
export type Decider = string | Readonly<Record<string, string>>;

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
  /** Whoever resumes the thread vouches for it; nothing here can check it. */
  readonly decidedBy?: Decider;
}

/** A call that waits, and the rule it falls under. */
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
      const target =
        name === undefined || name === call.name
          ? rule
          : typeof name === "string"
            ? rule.renameTo.get(name)
            : undefined;
      if (!target) {
        const allowed = [...new Set([...rule.renameTo.values()].map((tool) => tool.name))];
        const instead = allowed.length > 0 ? `, except to ${allowed.join(", ")}` : "";
        return { problem: `an edit may change arguments, not the tool ("${String(name)}")${instead}` };
      }
      const issues = checkArguments(target.schema, args);
      return issues.length > 0
        ? { problem: `the edited arguments do not fit: ${describeWrong(issues)}` }
        : { type, editedAction: { name: target.name, args } };
    }
  }
}

function isDecider(value: unknown): value is Decider {
  if (typeof value === "string") return value !== "";
  return isRecord(value) && Object.values(value).every((part) => typeof part === "string");
}

/** The decisions in a resume value, or what is wrong with it in words for the person. */
export function readResume(
  value: unknown,
  approvalId: string,
  gated: readonly Gated[],
): { readonly decisions: readonly ApprovalDecision[]; readonly decidedBy?: Decider } | string {
  if (!isRecord(value) || !Array.isArray(value.decisions)) {
    return "The answer was not understood: expected { decisions: [ … ] } with one decision per action.";
  }
  if (value.approvalId !== undefined && value.approvalId !== approvalId) {
    return "The answer belonged to another approval; please decide again.";
  }
  const { decidedBy } = value;
  if (decidedBy !== undefined && !isDecider(decidedBy)) {
    return "It is not clear who decided: decidedBy must be a name or an object of texts.";
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
  return { decisions, ...(decidedBy !== undefined && { decidedBy }) };
}
