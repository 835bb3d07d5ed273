import { type MessageContent, ToolMessage } from "@langchain/core/messages";
import { type Command, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import type { CatalogTool, Client, Interceptor, ToolResult, ToolRuntime } from "@tenon/client";
import { ConfigError, isRecord, META } from "@tenon/core";
import { checkOptions, digest } from "@tenon/core/internal";
import { approvalOf } from "../approval/approval-records.ts";
import type { ModelProvider } from "../model/provider-schemas/index.ts";
import { durableDriver } from "../question/questions.ts";
import { canPause, rethrowParked, taskInput } from "./checkpoint.ts";
import { directed } from "./command-checks.ts";
import { copyToolMessage } from "./commands.ts";
import { checkToolErrors, resultFailure, type ToolErrors } from "./failures.ts";
import { type CallConfig, callIdOf, failed, McpTool, type McpToolMetadata } from "./mcp-tool.ts";
import { type MessageOrigin, resultMessage, type ShownResult, settled, shownAsText } from "./messages.ts";

/**
 * An interceptor of a client whose calls an agent makes: it sees the run's context, state and store in `request.runtime`, and
 * may answer with a ToolMessage or a Command. `goto: "__end__"` ends the run, with `mcpMiddleware` in the agent.
 */
export type AgentInterceptor<Context = unknown, State = unknown> = Interceptor<
  ToolRuntime<Context, State>,
  ToolMessage | Command
>;

/** A client whose interceptors may answer with messages and commands. */
export type AgentClient<Context = unknown, State = unknown> = Client<
  ToolRuntime<Context, State>,
  ToolMessage | Command
>;

/** What a tool needs of its client. */
export type CallingClient<Context = unknown, State = unknown> = Pick<
  AgentClient<Context, State>,
  "callTool" | "elicitation"
>;

/** Written to the run's custom stream while a tool works. */
export type McpStreamChunk = { readonly server: string; readonly tool: string; readonly toolCallId?: string } & (
  | {
      readonly type: "mcp_progress";
      readonly progress: number;
      readonly total?: number;
      readonly message?: string;
      readonly percent?: number;
    }
  | { readonly type: "mcp_log"; readonly level: string; readonly logger?: string; readonly data: unknown }
);

type Output = [content: ToolMessage | Command | MessageContent, artifact: unknown];

/** What is the same for all calls of a tool. */
export interface ToolSettings {
  /** Left out, failures are messages unless `mcpMiddleware` says otherwise. */
  readonly toolErrors?: ToolErrors | undefined;
  readonly provider?: ModelProvider | undefined;
  /** What a message shows of a result. Default: all as text. */
  readonly show?: ((result: ToolResult) => Promise<ShownResult>) | undefined;
  /** Milliseconds without an answer until a call fails, where the call's own configuration names none. */
  readonly timeoutMs?: number | undefined;
  /** Sent with every call. */
  readonly headers?: Record<string, string> | undefined;
  /** Ends a call in which an older server asks, and sends it again with the answers. */
  readonly replay?: boolean | undefined;
}

function stateOf(state: unknown): unknown {
  if (!isRecord(state) || !("lg_tool_call" in state)) return state;
  const { lg_tool_call: _own, ...rest } = state; // added by the tool node for itself
  return rest;
}

/** A result as the tool's output; outside a graph, where no call waits for a message, as content or as an error. */
async function answered(
  entry: CatalogTool,
  id: string | undefined,
  config: CallConfig,
  result: ToolResult,
  { show, toolErrors }: ToolSettings,
): Promise<Output> {
  if (result.isError && (id === undefined || toolErrors === "throw")) {
    const error = resultFailure(entry, result);
    if (id === undefined) throw error;
    return [failed(originOf(entry), id, config, error, toolErrors), undefined];
  }
  const shown = show && !result.isError ? await show(result) : shownAsText(result);
  if (id === undefined) return [shown.content, shown.artifact];
  const message = resultMessage(originOf(entry), id, result, shown);
  return [toolErrors === "return" ? settled(message) : message, undefined];
}

function originOf(entry: CatalogTool): MessageOrigin {
  return {
    name: entry.name,
    metadata: { mcp: { server: entry.server, tool: entry.wireName, annotations: entry.annotations } },
  };
}

/** What a person decided about a call, for whoever writes it down. */
function decidedAbout(state: unknown, toolCallId: string | undefined): Pick<ToolRuntime, "approval"> {
  const record = toolCallId === undefined ? undefined : approvalOf({ state, toolCallId });
  if (!record) return {};
  const { decision, decidedBy, askedAt, decidedAt } = record;
  return { approval: { decision, ...(decidedBy !== undefined && { decidedBy }), askedAt, decidedAt } };
}

/** A question in a call without an id cannot wait for its answer: nothing would tell the call from others when the run goes on. */
function unanswerable({ name, server }: CatalogTool, error: unknown): unknown {
  if (!(error instanceof ConfigError) || error.code !== "no_answerer") return error;
  return new ConfigError(
    `Tool "${name}" of server "${server}" asks a question, and this call cannot wait for the answer, since it has no id. In a node of ` +
      'a graph with a checkpointer call it with toolCaller(client), or with tool.invoke({ type: "tool_call", id, name, args }, config)',
    { code: "no_answerer", server, maybeExecuted: true, data: error.data, cause: error },
  );
}

async function callThrough<Context, State>(
  client: CallingClient<Context, State>,
  entry: CatalogTool,
  args: Record<string, unknown>,
  config: CallConfig,
  settings: ToolSettings,
): Promise<Output> {
  const id = callIdOf(undefined, config);
  const { server, wireName } = entry;
  if (id !== undefined) rethrowParked(config, id); // a retrying middleware called again: stay suspended
  const threadId = config.configurable?.thread_id;
  const taskId = config.executionInfo?.taskId;
  const callKey = `${taskId ?? "-"}:${id ?? "-"}`;
  const source = { server, tool: wireName, ...(id !== undefined && { toolCallId: id }) };
  const write = config.writer ?? undefined;
  const signal = config.signal;
  // LangChain keeps the timeout of one invocation here besides making a signal of it
  const timeoutMs = config.metadata?.timeoutMs ?? settings.timeoutMs;
  const interrupts = client.elicitation === "interrupt" && id !== undefined;
  // outside a graph nothing tells a repetition from a second wish
  const inGraph = id !== undefined && taskId !== undefined;
  // a task outlives this process: whoever continues the thread must find it, whoever answers its questions
  const remembers = interrupts || (entry.task !== undefined && id !== undefined && canPause(config));
  try {
    const key = inGraph ? digest([threadId ?? "-", taskId, id, server, wireName, args]) : undefined;
    const outcome = await client.callTool(server, wireName, args, {
      ...(signal && { signal }),
      ...(typeof timeoutMs === "number" && timeoutMs > 0 && { timeoutMs }),
      ...(settings.headers && { headers: settings.headers }),
      // whoever goes on with the run makes the same call
      ...(key !== undefined && { meta: { [META.idempotencyKey]: key }, callId: `call-${key}` }),
      runtime: {
        context: config.context as Context, // checked by the agent's contextSchema
        // the graph's state by construction; a node of one's own does not hand it on
        state: stateOf(config.state ?? taskInput(config)) as State,
        store: config.store,
        ...(id !== undefined && { toolCallId: id }),
        ...(typeof threadId === "string" && { threadId }),
        ...decidedAbout(config.state, id),
        ...(write && { writer: write }),
      },
      ...(write && {
        onProgress: (event) => write({ type: "mcp_progress", ...source, ...event } satisfies McpStreamChunk),
        onLog: (event) => write({ type: "mcp_log", ...source, ...event } satisfies McpStreamChunk),
      }),
      ...(remembers && {
        driver: durableDriver({
          execution: config,
          callKey,
          toolCallId: id,
          server,
          tool: wireName,
          signal,
          replay: settings.replay ?? false,
          interrupts,
        }),
      }),
    });
    if (id !== undefined) rethrowParked(config, id); // an interceptor swallowed the interrupt
    if (isCommand(outcome)) return [directed(entry, id, config, outcome), undefined];
    if (ToolMessage.isInstance(outcome)) {
      if (id === undefined) return [outcome.content, outcome.artifact];
      return [
        copyToolMessage(outcome, {
          status: outcome.status ?? "success",
          name: outcome.name ?? entry.name,
          tool_call_id: id,
        }),
        undefined,
      ];
    }
    return await answered(entry, id, config, outcome, settings);
  } catch (error) {
    if (id === undefined) throw client.elicitation === "interrupt" ? unanswerable(entry, error) : error;
    rethrowParked(config, id);
    if (signal?.aborted || isGraphBubbleUp(error)) throw error;
    return [failed(originOf(entry), id, config, error, settings.toolErrors), undefined];
  }
}

/** @throws ConfigError `code: "invalid_option"` */
export function replays(legacyQuestions: unknown, where: string): boolean {
  if (legacyQuestions === undefined || legacyQuestions === "error") return false;
  if (legacyQuestions === "replay") return true;
  throw new ConfigError(
    `${where}.legacyQuestions is ${JSON.stringify(legacyQuestions)}; expected "error" or "replay"`,
    { code: "invalid_option" },
  );
}

/** One entry of a client's catalog as a LangChain tool. */
export function toolOf<Context, State>(
  client: CallingClient<Context, State>,
  entry: CatalogTool,
  settings: ToolSettings = {},
): McpTool {
  const metadata: McpToolMetadata = { server: entry.server, tool: entry.wireName, annotations: entry.annotations };
  const tool = new McpTool({
    name: entry.name,
    description: entry.description,
    inputSchema: entry.inputSchema,
    provider: settings.provider,
    responseFormat: "content_and_artifact",
    metadata: { mcp: metadata },
    func: (args, _manager, config) =>
      // the schema check has found an object; the rest of the configuration comes from the tool node
      callThrough(client, entry, args as Record<string, unknown>, config ?? {}, settings),
  });
  tool.toolErrors = settings.toolErrors;
  return tool;
}

/** Options of `mcpTools`. */
export interface McpToolsOptions {
  /** Configured names of the servers whose tools are wanted; all when left out. */
  readonly servers?: readonly string[];
  /**
   * Whose rules the schemas must fit. The default suits OpenAI, DeepSeek, Anthropic and compatible endpoints; Gemini has a
   * dialect of its own, and Anthropic refuses argument names with other letters than a-z.
   */
  readonly provider?: ModelProvider;
  /**
   * `"return"`: a failed call is a message with status `"error"` and never ends the run. `"throw"`: it ends the run with a typed
   * error, with and without middleware. Left out, it is a message unless `mcpMiddleware` says otherwise.
   */
  readonly toolErrors?: ToolErrors;
  /**
   * What becomes of a question that a server of revision 2025-11-25 or older asks inside a call, with `elicitation: "interrupt"`:
   * `"error"` (default) fails the call; `"replay"` ends the call, interrupts the run, and sends the call again with the answers. All
   * the server does before a question then happens once more for each question of the call.
   */
  readonly legacyQuestions?: "error" | "replay";
}

/**
 * The tools of a client's catalog as LangChain tools, one per entry, named as in the catalog.
 *
 * The model gets each tool's JSON Schema in a form it accepts (`toModelSchema`); arguments are checked against the server's own
 * schema before anything is sent. Whatever goes wrong reaches the model as a message with status `"error"`, unless `toolErrors`
 * says otherwise. The result's structured content and `_meta` are in the message's artifact (`McpArtifact`).
 *
 * @throws ConfigError `code: "unknown_option"` for an option nobody reads, `"unknown_provider"`, `"invalid_option"`
 * @example
 * const agent = createAgent({ model, tools: await mcpTools(client), middleware: [mcpMiddleware()], checkpointer });
 */
export async function mcpTools<Context = unknown, State = unknown>(
  client: AgentClient<Context, State>,
  options: McpToolsOptions = {},
): Promise<McpTool[]> {
  checkOptions(options, ["servers", "provider", "toolErrors", "legacyQuestions"], "mcpTools(client, options)");
  const { servers = [], provider, toolErrors } = options;
  const replay = replays(options.legacyQuestions, "mcpTools(client, options)");
  checkToolErrors(toolErrors, "mcpTools(client, options)");
  const catalog = await client.listTools(...servers);
  return catalog.map((entry) => toolOf(client, entry, { provider, toolErrors, replay }));
}
