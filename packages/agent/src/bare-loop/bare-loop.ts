import type { CatalogTool, Client, ToolRuntime } from "@tenon/client";
import { ConfigError, ExecutionError } from "@tenon/core";
import { checkOptions, inSpan, parseUrl } from "@tenon/core/internal";
import { type ActionRequest, type ApprovalDecision, readDecision } from "../approval/decisions.ts";
import { type ApprovalPolicy, type GatedTool, gatedTools } from "../approval/policy.ts";
import type { ModelProvider } from "../model/provider-schemas/index.ts";
import type { RunEvent } from "../thread/events.ts";
import { inRun } from "../thread/run-trace.ts";
import { EMPTY_FAILURE, EMPTY_RESULT } from "../tool/messages.ts";
import { type ChatMessage, complete, endpointOf, type ModelEndpoint } from "./chat-completions.ts";
import {
  boundedText,
  checkLimit,
  type Dispatched,
  MAX_RESULT_CHARS,
  type OpenAIToolCall,
  type ReadCall,
  readCall,
  send,
  toOpenAITools,
} from "./openai-tools.ts";

/** What happens while a bare loop runs. */
export type LoopEvent = Extract<RunEvent, { type: "text" | "tool-start" | "tool-end" }>;

/** Options of `bareLoop`. */
export interface BareLoopOptions {
  /** Whose tools are called. Servers' questions go to its `elicitation` handler. */
  client: Client;
  /** The model's name at `endpoint`; without one `openai:…`, `deepseek:…`, or a name at `TENON_MODEL_BASE_URL`. */
  model: string;
  /** Where the model is. Default: by its name. */
  endpoint?: ModelEndpoint;
  /** The conversation so far; the given list is not changed. */
  messages: readonly ChatMessage[];
  /** Tools the model may use. Default: all of the client. */
  tools?: readonly CatalogTool[];
  /** Whose rules schemas must fit. Default `"strictest"`. */
  provider?: ModelProvider;
  /** How often the model is asked at most. Default 16. */
  maxTurns?: number;
  /** Ends the loop; the call that runs is cancelled. */
  signal?: AbortSignal;
  /** Hears what happens, as it happens. */
  onEvent?: (event: LoopEvent) => void;
  /** Asks the endpoint to stream, so that `onEvent` gets text as it is written. Default false. */
  stream?: boolean;
  /**
   * Decides about calls that need an approval, one after the other: those of tools annotated destructive or open-world, or
   * what `policy` says. `error` says why the last decision could not be used. Left out, nothing is asked.
   */
  approve?: (action: ActionRequest & { readonly error?: string }) => ApprovalDecision | Promise<ApprovalDecision>;
  /** As for `approvals`. */
  policy?: ApprovalPolicy;
  /** Characters of one result that the model gets. Default 40,000. */
  maxResultChars?: number;
  /** What interceptors see as `request.runtime`. */
  runtime?: ToolRuntime;
  /** Further fields of each request, for example `{ temperature: 0 }`. */
  request?: Readonly<Record<string, unknown>>;
}

/** How a bare loop ended. Every call in `messages` has its answer, so the conversation can go on from there. */
export interface BareLoopResult {
  /** `max_turns`: the model still wanted tools when it had been asked `maxTurns` times. */
  readonly status: "done" | "max_turns";
  /** The model's last text. */
  readonly reply: string;
  readonly messages: readonly ChatMessage[];
  /** How often the model was asked. */
  readonly turns: number;
}

const KNOWN = [
  "client",
  "model",
  "endpoint",
  "messages",
  "tools",
  "provider",
  "maxTurns",
  "signal",
  "onEvent",
  "stream",
];
const MORE = ["approve", "policy", "maxResultChars", "runtime", "request"];
const MAX_ASKED = 5;

/** One question to the model, in its span. */
function inChat<T>(baseUrl: string, model: string, run: () => Promise<T>): Promise<T> {
  return inSpan(
    () => ({
      name: `chat ${model}`,
      kind: "client",
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "server.address": parseUrl(baseUrl)?.hostname ?? "",
      },
    }),
    run,
  );
}

/** Asks about one call; what is to be sent, or what the model is told instead. */
async function decide(
  approve: NonNullable<BareLoopOptions["approve"]>,
  rule: GatedTool,
  call: OpenAIToolCall,
  read: Exclude<ReadCall, { problem: string }>,
  tools: readonly CatalogTool[],
): Promise<Exclude<ReadCall, { problem: string }> | Dispatched> {
  const { entry, args } = read;
  if (rule.when && !(await rule.when(args))) return read;
  const description = typeof rule.description === "function" ? await rule.description(args) : rule.description;
  const origin = { server: entry.server, tool: entry.wireName };
  const action: ActionRequest = { name: entry.name, args, description, toolCallId: call.id, ...origin };
  let error: string | undefined;
  for (let asked = 0; asked < MAX_ASKED; asked += 1) {
    const given: unknown = await approve({ ...action, ...(error !== undefined && { error }) });
    const decision = readDecision(given, { call: { name: entry.name, args, id: call.id }, rule });
    if ("problem" in decision) error = decision.problem;
    else if (decision.type === "approve") return read;
    else if (decision.type === "edit") {
      const { name, args } = decision.editedAction; // another tool's name where the rule allows it
      return { entry: tools.find((tool) => tool.name === name) ?? entry, args: { ...args } };
    } else if (decision.type === "respond") return { text: decision.message, status: "success" };
    else {
      const reason = decision.message ? ` Reason: ${decision.message}` : "";
      return { text: `The person rejected this call; it was not carried out.${reason}`, status: "error" };
    }
  }
  throw new ExecutionError(
    `approve gave ${MAX_ASKED} decisions about ${entry.name} that cannot be used: ${error ?? ""}`,
    {
      code: "approval_decision",
      server: entry.server,
    },
  );
}

/** Carries out all calls of one turn: approvals one by one, then everything at once. One answer per call, in order. */
async function answerAll(
  options: BareLoopOptions,
  tools: readonly CatalogTool[],
  gated: ReadonlyMap<string, GatedTool>,
  calls: readonly OpenAIToolCall[],
): Promise<Dispatched[]> {
  const limit = options.maxResultChars ?? MAX_RESULT_CHARS;
  const planned: Array<ReadCall | Dispatched> = [];
  for (const call of calls) {
    const read = readCall(tools, call, options.provider);
    const rule = "problem" in read ? undefined : gated.get(read.entry.name);
    planned.push(
      rule && options.approve && !("problem" in read) ? await decide(options.approve, rule, call, read, tools) : read,
    );
    options.signal?.throwIfAborted();
  }
  const failed = new AbortController(); // one call that throws ends the others
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const ended = await Promise.allSettled(
    planned.map(async (plan, at): Promise<Dispatched> => {
      const { id, function: fn } = calls[at] ?? { id: "", function: { name: "", arguments: "" } };
      const end = ({ text, status }: Dispatched): Dispatched => {
        options.onEvent?.({ type: "tool-end", toolCallId: id, name: fn.name, status, text });
        return { text, status };
      };
      if ("problem" in plan) return end({ text: boundedText(plan.problem, limit, EMPTY_FAILURE), status: "error" });
      if ("text" in plan) return end({ ...plan, text: boundedText(plan.text, limit, EMPTY_RESULT) });
      const { entry, args } = plan;
      const origin = { server: entry.server, tool: entry.wireName };
      options.onEvent?.({ type: "tool-start", toolCallId: id, name: entry.name, ...origin, args });
      const { maxResultChars, runtime } = options;
      const more = { ...(maxResultChars !== undefined && { maxResultChars }), ...(runtime && { runtime }) };
      try {
        return end(await send(options.client, plan, id, { signal, ...more }));
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    }),
  );
  options.signal?.throwIfAborted();
  if (failed.signal.aborted) throw failed.signal.reason;
  return ended.flatMap((item) => (item.status === "fulfilled" ? [item.value] : []));
}

/**
 * An agent without a framework: asks an OpenAI-compatible endpoint, carries out the calls it answers with (several of one turn
 * at once), and asks again, until the model answers with text or `maxTurns` is reached.
 *
 * @throws ConfigError `unknown_option`, `invalid_option`, `missing_key`, `missing_base_url`, `approval_policy`; errors of the
 *   endpoint (`complete`); the signal's reason when it aborts; what an interceptor throws that is not a Tenon error
 * @example
 * const { reply } = await bareLoop({ client, model: "deepseek:deepseek-chat", messages: [{ role: "user", content: "…" }] });
 */
export function bareLoop(options: BareLoopOptions): Promise<BareLoopResult> {
  return inRun({}, () => loop(options));
}

async function loop(options: BareLoopOptions): Promise<BareLoopResult> {
  checkOptions(options, [...KNOWN, ...MORE], "bareLoop(options)");
  checkLimit("maxTurns", options.maxTurns);
  checkLimit("maxResultChars", options.maxResultChars);
  if (options.policy && !options.approve) {
    throw new ConfigError("bareLoop has a policy, but nobody to ask: give it approve as well", {
      code: "approval_policy",
    });
  }
  const { endpoint, model } = endpointOf(options.model, options.endpoint);
  const { signal, stream = false, request, maxTurns = 16 } = options;
  signal?.throwIfAborted();
  const tools = options.tools ?? (await options.client.listTools());
  const approvable = tools.map(({ name, inputSchema, server, wireName, annotations }) => {
    return { name, schema: inputSchema, metadata: { mcp: { server, tool: wireName, annotations } } };
  });
  const gated = options.approve ? gatedTools(approvable, options.policy ?? {}, true) : new Map<string, GatedTool>();
  const wireTools = toOpenAITools(tools, options.provider ? { provider: options.provider } : {});
  const messages: ChatMessage[] = [...options.messages];
  for (let turn = 1; ; turn += 1) {
    const onText = (delta: string) => options.onEvent?.({ type: "text", messageId: `turn-${turn}`, delta });
    const answer = await inChat(endpoint.baseUrl, model, () =>
      complete(endpoint, { model, messages, tools: wireTools, stream, request, signal, onText }),
    );
    messages.push(answer);
    const calls = answer.tool_calls ?? [];
    const reply = answer.content ?? "";
    if (calls.length === 0) return { status: "done", reply, messages, turns: turn };
    if (turn >= maxTurns) {
      for (const { id } of calls) {
        messages.push({ role: "tool", tool_call_id: id, content: "Not carried out: the limit of turns was reached." });
      }
      return { status: "max_turns", reply, messages, turns: turn };
    }
    const answers = await answerAll(options, tools, gated, calls);
    for (const [at, { id }] of calls.entries()) {
      messages.push({ role: "tool", tool_call_id: id, content: answers[at]?.text ?? EMPTY_RESULT });
    }
  }
}
