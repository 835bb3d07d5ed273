import type { ElicitationAnswer } from "@tenon/client";
import { ConfigError, isRecord } from "@tenon/core";
import type { ApprovalDecision, ApprovalInterrupt, ApprovalResume, Decider } from "../approval/decisions.ts";
import type { DecisionKind } from "../approval/policy.ts";
import type { ElicitationInterrupt, ElicitationResume } from "./questions.ts";

/** One tool call that waits for a person's decision. */
export interface QuestionAction {
  readonly name: string;
  readonly server?: string;
  readonly tool?: string;
  readonly toolCallId?: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly description: string;
  readonly decisions: readonly DecisionKind[];
  /** JSON Schema of the arguments, where they may be edited. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

/** Something a run waits for a person to answer. `id` is the interrupt's. */
export type Question =
  | {
      readonly kind: "approval";
      readonly id: string;
      readonly approvalId?: string;
      readonly actions: readonly QuestionAction[];
      /** When it was asked and until when it may be answered, as far as known; ISO 8601. */
      readonly askedAt?: string;
      readonly expiresAt?: string;
      readonly error?: string;
    }
  /** As the run was interrupted with it. */
  | ({ readonly kind: "elicitation"; readonly id: string } & Omit<ElicitationInterrupt, "type">);

/** A person's answer: decisions in the order of an approval's actions, or answers by key of an elicitation. */
export type Answer =
  | { readonly decisions: readonly ApprovalDecision[]; readonly decidedBy?: Decider }
  | { readonly answers: Readonly<Record<string, ElicitationAnswer>> };

interface PendingInterrupt {
  readonly id?: string;
  readonly value?: unknown;
}

/** A saved thread as LangGraph describes it. */
export interface ThreadState {
  readonly values: unknown;
  readonly next: readonly string[];
  readonly tasks: ReadonlyArray<{ readonly interrupts: readonly PendingInterrupt[]; readonly result?: unknown }>;
  readonly config: { readonly configurable?: Readonly<Record<string, unknown>> };
}

/** What is needed of an agent: what `createAgent` returns, or a compiled graph with a `messages` state. */
export interface RunnableAgent {
  stream(input: unknown, config?: object): Promise<AsyncIterable<unknown>>;
  getState(config: object): Promise<ThreadState>;
  /** The compiled graph inside what `createAgent` returns. */
  readonly graph?: { stream(input: unknown, config?: object): Promise<AsyncIterable<unknown>> };
  /** `createAgent` keeps its tools here; read for the server and wire name of a call. */
  readonly options?: { readonly tools?: readonly unknown[] };
}

type AnyApproval = Pick<ApprovalInterrupt, "actionRequests" | "reviewConfigs"> & Partial<ApprovalInterrupt>;

function approvalQuestion(id: string, value: AnyApproval): Question {
  return {
    kind: "approval",
    id,
    ...(value.approvalId !== undefined && { approvalId: value.approvalId }),
    actions: value.actionRequests.map((action, i): QuestionAction => {
      const review = value.reviewConfigs[i];
      return {
        name: action.name,
        args: action.args,
        description: action.description ?? "",
        decisions: review?.allowedDecisions ?? [],
        ...(action.server !== undefined && { server: action.server }),
        ...(action.tool !== undefined && { tool: action.tool }),
        ...(action.toolCallId !== undefined && { toolCallId: action.toolCallId }),
        ...(review?.argsSchema && { schema: review.argsSchema }),
      };
    }),
    ...(value.askedAt !== undefined && { askedAt: value.askedAt }),
    ...(value.expiresAt !== undefined && { expiresAt: value.expiresAt }),
    ...(value.error !== undefined && { error: value.error }),
  };
}

function questionOf({ id, value }: PendingInterrupt): Question {
  if (id !== undefined && isRecord(value)) {
    // our own middleware and LangChain's humanInTheLoopMiddleware write this shape, and nothing else has these two lists
    if (Array.isArray(value.actionRequests) && Array.isArray(value.reviewConfigs)) {
      return approvalQuestion(id, value as unknown as AnyApproval);
    }
    if (value.type === "elicitation" && typeof value.elicitationId === "string") {
      const { type: kind, trace: _trace, ...asked } = value as unknown as ElicitationInterrupt; // written by the driver of mcpTools
      return { kind, id, ...asked };
    }
  }
  throw new ConfigError(
    `The thread waits at an interrupt that is neither an approval nor an elicitation (${JSON.stringify(value)?.slice(0, 200)}); ` +
      "resume it yourself with a Command before driving the agent.",
    { code: "unknown_interrupt" },
  );
}

/** The open questions of a saved thread. */
export function questionsOf(state: ThreadState): Question[] {
  // a task that was answered and has finished keeps its interrupt in the state until its siblings are done too
  return state.tasks.flatMap((task) => (task.result === undefined ? task.interrupts.map(questionOf) : []));
}

/** Whether LangGraph says that a graph has no checkpointer. */
export function lacksCheckpointer(error: unknown): boolean {
  return (isRecord(error) && error.lc_error_code === "MISSING_CHECKPOINTER") || /checkpointer/i.test(String(error));
}

/** The thread as it is saved now. */
export async function readThread(agent: RunnableAgent, threadId: string): Promise<ThreadState> {
  try {
    return await agent.getState({ configurable: { thread_id: threadId } });
  } catch (cause) {
    if (!lacksCheckpointer(cause)) throw cause;
    throw new ConfigError("The agent has no checkpointer, so its threads cannot be read or resumed. Give it one.", {
      code: "no_checkpointer",
      cause,
    });
  }
}

/**
 * The questions a thread waits for, for programs that show them elsewhere. Empty when it waits for none.
 * @throws ConfigError `code: "no_checkpointer"`, or `"unknown_interrupt"` for an interrupt that is not a question of Tenon or
 *   LangChain
 */
export async function openQuestions(agent: RunnableAgent, threadId: string): Promise<Question[]> {
  return questionsOf(await readThread(agent, threadId));
}

/**
 * What a question's interrupt is resumed with: the answer and the ids that tie it to this asking.
 * @throws ConfigError `code: "answer_kind"` when the answer is of the other kind
 * @example
 * await invokeAgent(agent, new Command({ resume: { [question.id]: resumeValue(question, answer) } }), config)
 */
export function resumeValue(question: Question, answer: Answer): ApprovalResume | ElicitationResume {
  if (question.kind === "approval" && "decisions" in answer) {
    // what cannot be used goes on as it is: the approval asks again and says why
    const given: readonly ApprovalDecision[] = Array.isArray(answer.decisions) ? answer.decisions : [];
    const decisions = given.map((decision, i): ApprovalDecision => {
      if (decision?.type !== "edit") return decision;
      // LangChain's own middleware wants the name repeated
      return { ...decision, editedAction: { name: question.actions[i]?.name ?? "", ...decision.editedAction } };
    });
    // and it sends no id and takes none
    return {
      ...(question.approvalId !== undefined && { approvalId: question.approvalId }),
      decisions,
      ...(answer.decidedBy !== undefined && { decidedBy: answer.decidedBy }),
    };
  }
  if (question.kind === "elicitation" && "answers" in answer) {
    return { elicitationId: question.elicitationId, answers: answer.answers };
  }
  const expected = question.kind === "approval" ? "{ decisions: [ … ] }" : "{ answers: { [key]: … } }";
  throw new ConfigError(
    `The answer to an ${question.kind} is ${expected}; given ${JSON.stringify(Object.keys(answer))}`,
    {
      code: "answer_kind",
    },
  );
}
