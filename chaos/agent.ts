/** The desk's agent as a process of its own that is told what to do over IPC. Started by the chaos harness. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import {
  type InteractiveResult,
  openQuestions,
  type Question,
  type RunnableAgent,
  resolveModel,
  runInteractive,
} from "@tenon/agent";
import { createClient, renderText, type ToolCallOutcome } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { isRecord, META, serializeError } from "@tenon/core";
import { openSigningKey } from "@tenon/server/development";
import { openAudit } from "../apps/after-sales/src/agent/audit.ts";
import { openDesk } from "../apps/after-sales/src/agent/desk.ts";
import { openThreads } from "../apps/after-sales/src/agent/threads.ts";
import { tokensFor } from "../apps/after-sales/src/agent/token-sources.ts";
import type { Place } from "../apps/after-sales/src/database/place.ts";
import { offlineRules } from "../apps/after-sales/src/offline/rules.ts";
import { signingKeyPath } from "../apps/after-sales/src/servers/trust.ts";
import { textsFor } from "../apps/after-sales/src/texts/index.ts";
import type { Asked, Plan, Request, Said, Told } from "./agent-words.ts";

/** What the process is started with; it comes in the environment as JSON. */
export interface AgentOptions {
  readonly place: Place;
  readonly urls: { readonly order: string; readonly notification: string };
}

const { place, urls } = JSON.parse(process.env.TENON_CHAOS_AGENT ?? "{}") as AgentOptions; // written by the harness
const user = { userId: "user_zhangsan", userName: "张三" };

const send = (message: Said | { ready: true }): void => void process.send?.(message, () => undefined);
process.on("disconnect", () => process.exit(0)); // the harness is gone

const threads = await openThreads(place);
const key = await openSigningKey(signingKeyPath(place.directory));
const tokens = tokensFor(urls, {}, key);
const audit = await openAudit(place);
const desk = openDesk({
  urls,
  tokens,
  user,
  model: await resolveModel("offline", { offline: offlineRules("zh") }),
  threads,
  audit,
  texts: textsFor("zh"),
});

/** A program that begins tasks and keeps their ids, beside the desk. */
const own = createClient({
  interceptors: [audit.interceptor],
  servers: {
    order: {
      url: urls.order,
      auth: bearer(() => tokens.order?.(user.userId) ?? Promise.reject(new Error("no token"))),
    },
  },
});

/** What a person who follows the plan says to a question; undefined where they leave it open. */
function answer(question: Question, plan: Plan) {
  if (question.kind === "approval") {
    const decision =
      plan.approval === "approve" ? ({ type: "approve" } as const) : ({ type: "reject", message: "chaos" } as const);
    return { decisions: question.actions.map(() => decision) };
  }
  const answers = Object.entries(question.questions).map(([name, request]) => {
    if (plan.question === "decline" || plan.question === "dismiss") {
      return [name, { action: plan.question === "decline" ? ("decline" as const) : ("cancel" as const) }] as const;
    }
    const [field] = request.mode === "form" ? request.fields : [];
    const content = { [field?.name ?? "value"]: plan.question === "confirm" ? "confirm" : "cancel" };
    return [name, { action: "accept" as const, content }] as const;
  });
  return { answers: Object.fromEntries(answers) };
}

function messagesIn(values: unknown): readonly BaseMessage[] {
  const messages = isRecord(values) ? values.messages : undefined;
  return Array.isArray(messages) ? messages : [];
}

/** A message of the thread as the harness compares it. */
function toldIn(message: BaseMessage): Told {
  const common = { id: message.id ?? "", text: message.text };
  if (ToolMessage.isInstance(message)) {
    const artifact = isRecord(message.artifact) ? message.artifact : {};
    return {
      ...common,
      kind: "tool",
      callId: message.tool_call_id,
      tool: message.name ?? "",
      failed: message.status === "error",
      structured: artifact.structured ?? null,
      error: isRecord(artifact.error) ? artifact.error : null,
    };
  }
  if (AIMessage.isInstance(message)) {
    const calls = (message.tool_calls ?? []).map((call) => ({ id: call.id ?? "", name: call.name, args: call.args }));
    return { ...common, kind: "ai", calls };
  }
  return { ...common, kind: "human" };
}

const doneOf = ({ status, values }: InteractiveResult) => ({ status, told: messagesIn(values).map(toldIn) });

async function turn(agent: RunnableAgent, { thread, message, plan }: Extract<Request, { do: "turn" }>) {
  const go = (input: Parameters<typeof runInteractive>[1]) =>
    runInteractive(agent, input, {
      threadId: thread,
      context: user,
      leases: threads.leases,
      lease: threads.lease,
      ask: (question) => {
        const asked: Asked =
          question.kind === "approval"
            ? { kind: "approval", id: question.approvalId ?? question.id }
            : { kind: "question", id: question.elicitationId };
        const leave = question.kind === "elicitation" && plan.question === "leave";
        send({ event: "asked", thread, asked, answered: !leave });
        return leave ? undefined : answer(question, plan);
      },
    });
  // whoever had this turn before may have sent the message, and even now its last words may be on their way
  const before = await go(undefined);
  if (!message || messagesIn(before.values).some(({ id }) => id === message.id)) return doneOf(before);
  return doneOf(await go({ messages: [new HumanMessage({ id: message.id, content: message.text })] }));
}

async function task({ thread, orders, tag, task: known }: Extract<Request, { do: "task" }>) {
  let id = known;
  let outcome: ToolCallOutcome | undefined;
  if (id === undefined) {
    const args = { order_ids: orders, reason: tag };
    // whoever died before it knew the id begins the same task again
    const started = await own.tasks.start("order", "batch_refund", args, { meta: { [META.idempotencyKey]: tag } });
    if (started.id === undefined) outcome = started.result;
    else {
      id = started.id;
      send({ event: "accepted", thread, task: id });
    }
  }
  if (id !== undefined) outcome = await own.tasks.resume("order", id, { tool: "batch_refund" });
  if (!outcome) throw new Error("a task without an outcome");
  const told: Told = {
    kind: "tool",
    id: id ?? "",
    callId: id ?? "",
    tool: "mcp_order_batch_refund",
    text: renderText(outcome.content),
    failed: outcome.isError,
    structured: outcome.structured ?? null,
    error: null,
  };
  return { status: "done", told: [told] } as const;
}

async function carryOut(request: Request) {
  if (request.do === "task") return task(request);
  const agent = await desk.agent();
  if (request.do === "turn") return turn(agent, request);
  const { values, tasks } = await agent.getState({ configurable: { thread_id: request.thread } });
  const open = await openQuestions(agent, request.thread);
  const status = open.length > 0 ? "paused" : tasks.length > 0 ? "cut" : "done";
  return { status, told: messagesIn(values).map(toldIn) } as const;
}

process.on("message", (request: Request) => {
  carryOut(request).then(
    ({ status, told }) => send({ event: "done", id: request.id, status, told }),
    (error: unknown) => send({ event: "failed", id: request.id, error: serializeError(error) }),
  );
});
process.on("SIGTERM", () => {
  const ended = Promise.allSettled([desk.close(), own.close(), threads.close()]).then(() => audit.close());
  ended.then(() => process.exit(0));
});
send({ ready: true });
