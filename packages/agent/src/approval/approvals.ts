import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { getConfig } from "@langchain/langgraph";
import { ConfigError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { interruptTrace } from "../thread/run-trace.ts";
import { withOwnIds } from "../tool/call-ids.ts";
import { canPause, type Execution, pause, remember } from "../tool/checkpoint.ts";
import { notedOrigin, noteOrigins, originsOf } from "../tool/origins.ts";
import { type ServersOfAgent, waitFor } from "../tool/waiting-calls.ts";
import type { ApprovalRecord } from "./approval-records.ts";
import { type AskedCall, askedCall, jsonSchemaOf, ruleOf } from "./asked-calls.ts";
import { decidedMessage, type Edit } from "./decided-message.ts";
import {
  type ActionRequest,
  type ApprovalDecision,
  type ApprovalInterrupt,
  type Decider,
  type Gated,
  type ReviewConfig,
  readResume,
} from "./decisions.ts";
import { type ApprovableTool, type ApprovalPolicy, type GatedTool, gatedTools } from "./policy.ts";

function argsSchemaOf(rule: GatedTool): Record<string, unknown> | undefined {
  if (!rule.decisions.includes("edit")) return undefined;
  return jsonSchemaOf(rule.schema);
}

interface Asked {
  readonly gated: readonly Gated[];
  readonly texts: readonly string[];
  /** Milliseconds since 1970. */
  readonly askedAt: number;
}

/**
 * Evaluates `when` and the descriptions once per pause, so that what runs is what the person saw. What was asked can be answered
 * by an agent that does not have the tools now, because their server cannot be reached.
 * @param refuse throws when something that has to be asked about cannot be judged now
 */
async function reviewed(
  execution: Execution,
  calls: readonly Gated[],
  rules: ReadonlyMap<string, GatedTool>,
  refuse: () => Promise<void>,
): Promise<Asked> {
  const { askedAt, asked } = await remember(execution, "approvals:asked", async () => {
    await refuse();
    const asked: AskedCall[] = [];
    for (const { call, rule } of calls) {
      if (rule.when && !(await rule.when(call.args))) continue;
      const text = typeof rule.description === "function" ? await rule.description(call.args) : rule.description;
      asked.push(askedCall({ call, rule }, text));
    }
    return { askedAt: Date.now(), asked };
  });
  const gated = asked.map(({ call, ...saved }): Gated => ({ call, rule: rules.get(call.name) ?? ruleOf(call, saved) }));
  return { gated, texts: asked.map(({ text }) => text), askedAt };
}

interface Decided {
  readonly decisions: readonly ApprovalDecision[];
  readonly decidedBy?: Decider;
  readonly askedAt: string;
  readonly decidedAt: string;
}

/** Later than this no Date can say when it ends. */
const MAX_TTL_MS = 1e15;

const iso = (ms: number): string => new Date(ms).toISOString();

async function decide(
  execution: Execution,
  messageId: string,
  { gated, texts, askedAt: first }: Asked,
  ttlMs: number | undefined,
): Promise<Decided> {
  const actionRequests = gated.map(({ call, rule }, i): ActionRequest => {
    const origin = rule.server !== undefined && rule.tool !== undefined && { server: rule.server, tool: rule.tool };
    return { name: call.name, args: call.args, description: texts[i] ?? "", toolCallId: call.id, ...origin };
  });
  const reviewConfigs = gated.map(({ call, rule }): ReviewConfig => {
    const argsSchema = argsSchemaOf(rule);
    return { actionName: call.name, allowedDecisions: rule.decisions, ...(argsSchema && { argsSchema }) };
  });
  let error: string | undefined;
  let askedAt = first;
  for (let attempt = 0; ; attempt += 1) {
    const approvalId = `${messageId}:${attempt}`;
    const expiresAt = ttlMs === undefined ? undefined : askedAt + ttlMs;
    const payload: ApprovalInterrupt = {
      type: "approval",
      approvalId,
      actionRequests,
      reviewConfigs,
      askedAt: iso(askedAt),
      ...(expiresAt !== undefined && { expiresAt: iso(expiresAt) }),
      ...(error !== undefined && { error }),
      ...interruptTrace(),
    };
    const value = pause(execution, messageId, payload);
    // recorded, so that the same answer is early or late however often the step runs again
    const answeredAt = await remember(execution, "approvals:answered", async () => Date.now());
    const late = expiresAt !== undefined && answeredAt > expiresAt;
    const read = late
      ? `The answer came too late: it was asked for at ${iso(askedAt)} and waited until ${iso(expiresAt)}; please decide again.`
      : readResume(value, approvalId, gated);
    // a throw would be replayed on every later resume, so a bad answer is asked for again
    if (typeof read !== "string") return { ...read, askedAt: iso(askedAt), decidedAt: iso(answeredAt) };
    error = read;
    askedAt = answeredAt;
  }
}

function recordsOf(gated: readonly Gated[], { decisions, decidedBy, askedAt, decidedAt }: Decided): ApprovalRecord[] {
  return gated.flatMap(({ call, rule }, i) => {
    const decision = decisions[i];
    if (!decision) return [];
    const origin = rule.server !== undefined && rule.tool !== undefined && { server: rule.server, tool: rule.tool };
    const said = "message" in decision && decision.message !== undefined && { message: decision.message };
    const before = decision.type === "edit" && { proposed: { name: call.name, args: call.args } };
    const who = decidedBy !== undefined && { decidedBy };
    return [
      {
        toolCallId: call.id,
        name: call.name,
        ...origin,
        decision: decision.type,
        ...who,
        askedAt,
        decidedAt,
        ...said,
        ...before,
      },
    ];
  });
}

function answersOf(
  gated: readonly Gated[],
  decisions: readonly ApprovalDecision[],
  records: readonly ApprovalRecord[],
): ToolMessage[] {
  return gated.flatMap(({ call }, i) => {
    const decision = decisions[i];
    const fields = { tool_call_id: call.id, name: call.name, metadata: { approval: records[i] } };
    if (decision?.type === "respond") {
      return [new ToolMessage({ ...fields, content: decision.message, status: "success" })];
    }
    if (decision?.type !== "reject") return [];
    const reason = decision.message ? ` Reason: ${decision.message}` : "";
    const content = `The person rejected this call; it was not carried out.${reason}`;
    return [new ToolMessage({ ...fields, content, status: "error" })];
  });
}

/** Options of `approvals`. */
export interface ApprovalOptions {
  /** `false` leaves tools without an entry in the policy unasked. Default true: their annotations decide. */
  readonly derive?: boolean;
  /**
   * Milliseconds a person has to decide: a later answer is refused and the approval asked for again, with the reason. What was
   * decided in time stays decided. Default: no limit.
   */
  readonly ttlMs?: number;
  /**
   * A further update of the state for what was decided, such as entries for an audit channel of the agent's `stateSchema`. May
   * be called again for the same decision when a process dies before it is saved.
   */
  readonly audit?: (records: readonly ApprovalRecord[]) => Readonly<Record<string, unknown>>;
  /**
   * The client whose tools these are, as for `mcpMiddleware`; the policy may then name tools of servers that cannot be reached
   * now (`"server/wireTool"`). Default: none; a server none of whose tools are in the list counts as one that cannot be reached.
   */
  readonly client?: ServersOfAgent;
}

/**
 * Asks a person before tools run. All calls of one turn that need an approval are one interrupt with LangChain's
 * human-in-the-loop payload (`ApprovalInterrupt`); each gets its own decision, so approved calls and calls that need none run
 * although a sibling was rejected. Malformed answers and edits that do not fit the tool's schema are asked for again with
 * `error`. Nothing in a run's context can switch it off.
 *
 * What was asked can be answered while the server of the tool cannot be reached; what was not yet asked ends the run with a
 * ConnectionError `code: "call_waits"` then, and is asked when the thread is continued by an agent that has the tool.
 *
 * @param tools the agent's tools; those of `mcpTools` can be named `"server/wireTool"` in the policy
 * @param policy where a tool has no entry, its annotations decide: destructive or open-world tools that are not read-only are
 *   asked about
 * What was decided, by whom and when is kept with the model's message (`approvalsOf`, `approvalOf`).
 *
 * @throws ConfigError `code: "approval_policy"` or `"approval_decisions"` for a policy that cannot be meant, `"invalid_option"`
 * @example
 * approvals(tools, { "order/process_refund": { decisions: ["approve", "reject"], when: (args) => Number(args.amount) >= 500 } })
 */
export function approvals(
  tools: readonly ApprovableTool[],
  policy: ApprovalPolicy = {},
  options: ApprovalOptions = {},
): AgentMiddleware {
  checkOptions(options, ["derive", "ttlMs", "audit", "client"], "approvals(tools, policy, options)");
  const { ttlMs, client } = options;
  if (ttlMs !== undefined && !(ttlMs > 0 && ttlMs <= MAX_TTL_MS)) {
    throw new ConfigError(
      `approvals(tools, policy, options).ttlMs is ${ttlMs}; expected a number of milliseconds above 0, at most ${MAX_TTL_MS}`,
      {
        code: "invalid_option",
      },
    );
  }
  const away = client?.servers().flatMap(({ server, health }) => (health === "up" ? [] : [server]));
  const rules = gatedTools(tools, policy, options.derive ?? true, away);
  const origins = originsOf(tools);
  const names = new Set(tools.map(({ name }) => name));
  const gatedOrigins = new Map(
    [...origins].flatMap(([name, origin]) => (rules.has(name) ? [[name, { ...origin, gated: true }] as const] : [])),
  );
  return createMiddleware({
    name: "TenonApprovals",
    wrapModelCall: async (request, handler) => {
      const answer = await handler(request);
      noteOrigins(answer, gatedOrigins);
      return answer;
    },
    afterModel: {
      canJumpTo: ["model"],
      hook: async (state, runtime) => {
        const at = state.messages.findLastIndex((item) => AIMessage.isInstance(item));
        const said = state.messages[at];
        const message = AIMessage.isInstance(said) ? withOwnIds(said) : undefined;
        // another middleware may have answered some of the calls already
        const answered = state.messages.slice(at + 1).map((item) => ToolMessage.isInstance(item) && item.tool_call_id);
        const calls = message?.tool_calls ?? [];
        const waiting = calls.filter((call) => !answered.includes(call.id ?? ""));
        const candidates = waiting.flatMap((call): Gated[] => {
          const rule = rules.get(call.name);
          if (!rule) return [];
          const args = rule.toWire?.(call.args) ?? call.args; // what is judged and shown is what would be sent
          return [{ call: { ...call, args, id: call.id ?? "" }, rule }];
        });
        // to be asked about when the model chose them; these tools came without them, so no rule of now knows them
        const absent = waiting.flatMap(({ name }) => {
          const origin = names.has(name) ? undefined : notedOrigin(message, name);
          return origin?.gated ? [{ name, server: origin.server, tool: origin.tool }] : [];
        });
        if (!message || (candidates.length === 0 && absent.length === 0)) return undefined;
        const execution: Execution = { ...getConfig(), configurable: runtime.configurable };
        if (candidates.length > 0 && !canPause(execution)) {
          throw new ConfigError(
            `${candidates.map(({ call }) => call.name).join(", ")} needs an approval, but this run is not saved and cannot ` +
              "wait for one. Give the agent a checkpointer, and a thread_id to each run.",
            { code: "no_checkpointer" },
          );
        }
        const asked = await reviewed(execution, candidates, rules, async () => {
          for (const one of absent) {
            const waits = await waitFor(one, { client, tools });
            if (waits) throw waits; // run unasked, it would be carried out without an approval
          }
        });
        const { gated } = asked;
        if (gated.length === 0) return undefined;
        const decided = await decide(execution, message.id ?? "message", asked, options.ttlMs);
        const { decisions } = decided;
        const records = recordsOf(gated, decided);
        const edits = new Map(
          gated.flatMap(({ call }, i): Array<[string, Edit]> => {
            const decision = decisions[i];
            return decision?.type === "edit" ? [[call.id, { name: call.name, ...decision.editedAction }]] : [];
          }),
        );
        const answers = answersOf(gated, decisions, records);
        const update = {
          ...options.audit?.(records),
          messages: [decidedMessage(message, edits, records, origins), ...answers],
        };
        // with calls left to run the router finds them; with none it would leave the agent instead of asking the model
        return answers.length === waiting.length ? { ...update, jumpTo: "model" as const } : update;
      },
    },
  });
}
