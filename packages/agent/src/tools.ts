import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool, type ToolRunnableConfig } from "@langchain/core/tools";
import { type Command, isCommand } from "@langchain/langgraph";
import type { CatalogTool, Client, Interceptor, ToolResult, ToolRuntime } from "@tenon/client";
import { renderText } from "@tenon/client";
import {
  ConfigError,
  checkOptions,
  digest,
  ExecutionError,
  isRecord,
  type JsonObject,
  META,
  TenonError,
} from "@tenon/core";
import { checkArguments, describeArgumentIssues } from "./arguments.ts";
import { insideCreateAgent, isGuarded, rethrowParked } from "./checkpoint.ts";
import { answerCall, copyToolMessage, gotoOf } from "./commands.ts";
import { artifactOf, failureMessage, type McpArtifact, type MessageOrigin, resultMessage } from "./messages.ts";
import { type ModelProvider, modelSchemaOf, restoreArguments } from "./provider-schemas/index.ts";
import { durableDriver } from "./questions.ts";

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

/** Where a LangChain tool comes from, in `tool.metadata.mcp`. */
export interface McpToolMetadata {
  readonly server: string;
  /** Wire name. */
  readonly tool: string;
  readonly annotations: CatalogTool["annotations"];
}

/** What LangChain's and LangGraph's tool nodes add to the configuration of a tool. */
interface CallConfig extends ToolRunnableConfig {
  readonly state?: unknown;
  readonly store?: unknown;
  readonly toolCallId?: string;
  readonly writer?: ((chunk: unknown) => void) | null;
  readonly executionInfo?: { readonly taskId?: string };
}

type Output = [content: ToolMessage | Command | string, artifact: McpArtifact | undefined];

/** The part of a tool's metadata that `mcpTools` wrote, or undefined for other tools. */
export function mcpMetadata(tool: { readonly metadata?: unknown }): McpToolMetadata | undefined {
  const mcp = isRecord(tool.metadata) ? tool.metadata.mcp : undefined;
  // only mcpTools writes this key, always in this shape
  return isRecord(mcp) && typeof mcp.server === "string" ? (mcp as unknown as McpToolMetadata) : undefined;
}

function callIdOf(arg: unknown, config: CallConfig | undefined): string | undefined {
  if (isRecord(arg) && arg.type === "tool_call" && typeof arg.id === "string") return arg.id;
  return config?.toolCallId ?? config?.toolCall?.id;
}

type McpToolFields = Omit<ConstructorParameters<typeof DynamicStructuredTool<JsonObject>>[0], "schema"> & {
  /** The server's schema. */
  readonly inputSchema: JsonObject;
  /** Whose rules `schema` fits. */
  readonly provider?: ModelProvider | undefined;
};

/** A tool of an MCP server as a LangChain tool. Made by `mcpTools`. `schema` is what a model is shown. */
export class McpTool extends DynamicStructuredTool<JsonObject> {
  /** The server's own schema: what arguments are checked against. */
  readonly inputSchema: JsonObject;
  /** A model's arguments as the server wants them: the form in which they are approved, checked and sent. */
  readonly toWire: (args: Readonly<Record<string, unknown>>) => Record<string, unknown>;

  constructor({ inputSchema, provider, ...fields }: McpToolFields) {
    const { schema, wireNames } = modelSchemaOf(inputSchema, provider);
    super({ ...fields, schema });
    this.inputSchema = inputSchema;
    this.toWire = (args) => restoreArguments(inputSchema, args, wireNames);
  }

  // core validates JSON Schema with a library that throws on schemas it cannot read and reports errors with stack traces
  override async call<
    Arg extends Parameters<DynamicStructuredTool<JsonObject>["call"]>[0],
    Config extends ToolRunnableConfig | undefined,
  >(arg: Arg, config?: Config, tags?: string[]): ReturnType<DynamicStructuredTool<JsonObject>["call"]> {
    const call = isRecord(arg) && arg.type === "tool_call" ? arg : undefined;
    const given: unknown = call ? call.args : arg;
    const input = isRecord(given) ? this.toWire(given) : given;
    const issues = checkArguments(this.inputSchema, input);
    if (issues.length > 0) {
      const text = `Invalid arguments for ${this.name}: ${describeArgumentIssues(issues)}. Correct them and call again.`;
      const id = callIdOf(arg, config);
      if (id === undefined) throw new ExecutionError(text, { code: "invalid_arguments", data: { issues } });
      return new ToolMessage({ content: text, tool_call_id: id, name: this.name, status: "error" });
    }
    const checked: this = Object.create(this, { schema: { value: {} } });
    const sent = (call ? { ...call, args: input } : input) as Arg; // the same form, its arguments as the server wants them
    return super.call.call(checked, sent, config, tags);
  }
}

function stateOf(state: unknown): unknown {
  if (!isRecord(state) || !("lg_tool_call" in state)) return state;
  const { lg_tool_call: _own, ...rest } = state; // added by the tool node for itself
  return rest;
}

/** A result as the tool's output; outside a graph, where no call waits for a message, as text or as an error. */
function answered(entry: CatalogTool, id: string | undefined, result: ToolResult): Output {
  if (id !== undefined) return [resultMessage(originOf(entry), id, result), undefined];
  const text = renderText(result.content, result.structured);
  if (result.isError) throw new ExecutionError(text || `Tool ${entry.name} failed.`, { code: "tool_error" });
  return [text, artifactOf(result)];
}

function originOf(entry: CatalogTool): MessageOrigin {
  return {
    name: entry.name,
    metadata: { mcp: { server: entry.server, tool: entry.wireName, annotations: entry.annotations } },
  };
}

function directed(entry: CatalogTool, id: string | undefined, config: CallConfig, command: Command): Output {
  if (gotoOf(command).length > 0 && insideCreateAgent(config) && !isGuarded(config, id ?? "")) {
    throw new ConfigError(
      `An interceptor answered ${entry.name} with a Command whose goto is ${JSON.stringify(gotoOf(command))}, which ` +
        "createAgent ignores. Add mcpMiddleware() as the first middleware of the agent. The tool itself may have run: do not " +
        "call it again.",
      { code: "goto_needs_middleware", server: entry.server },
    );
  }
  return [id === undefined ? command : answerCall(command, { id, name: entry.name }), undefined];
}

async function callThrough<Context, State>(
  client: AgentClient<Context, State>,
  entry: CatalogTool,
  args: Record<string, unknown>,
  config: CallConfig,
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
  const interrupts = client.elicitation === "interrupt" && id !== undefined;
  try {
    const outcome = await client.callTool(server, wireName, args, {
      ...(signal && { signal }),
      // outside a graph nothing tells a repetition from a second wish
      ...(id !== undefined &&
        taskId !== undefined && {
          meta: { [META.idempotencyKey]: digest([threadId ?? "-", taskId, id, server, wireName, args]) },
        }),
      runtime: {
        context: config.context as Context, // checked by the agent's contextSchema
        state: stateOf(config.state) as State, // the graph's state by construction
        store: config.store,
        ...(id !== undefined && { toolCallId: id }),
        ...(typeof threadId === "string" && { threadId }),
        ...(write && { writer: write }),
      },
      ...(write && {
        onProgress: (event) => write({ type: "mcp_progress", ...source, ...event } satisfies McpStreamChunk),
        onLog: (event) => write({ type: "mcp_log", ...source, ...event } satisfies McpStreamChunk),
      }),
      ...(interrupts && {
        driver: durableDriver({ execution: config, callKey, toolCallId: id, server, tool: wireName, signal }),
      }),
    });
    if (id !== undefined) rethrowParked(config, id); // an interceptor swallowed the interrupt
    if (isCommand(outcome)) return directed(entry, id, config, outcome);
    if (ToolMessage.isInstance(outcome)) {
      return [
        copyToolMessage(outcome, {
          status: outcome.status ?? "success",
          name: outcome.name ?? entry.name,
          ...(id && { tool_call_id: id }),
        }),
        undefined,
      ];
    }
    return answered(entry, id, outcome);
  } catch (error) {
    if (id === undefined) throw error;
    rethrowParked(config, id);
    if (signal?.aborted || !(error instanceof TenonError) || error.code === "goto_needs_middleware") throw error;
    return [failureMessage(originOf(entry), id, error), undefined];
  }
}

/**
 * The tools of a client's catalog as LangChain tools, one per entry, named as in the catalog.
 *
 * The model gets each tool's JSON Schema in a form it accepts (`toModelSchema`); arguments are checked against the server's own
 * schema before anything is sent. Whatever goes wrong reaches the model as a message with status `"error"`; errors of interceptors that are not Tenon's are thrown. The
 * result's structured content and `_meta` are in the message's artifact (`McpArtifact`).
 *
 * @param options.servers configured names of the servers whose tools are wanted; all when left out
 * @param options.provider whose rules the schemas must fit. The default suits OpenAI, DeepSeek, Anthropic and compatible
 *   endpoints; Gemini has a dialect of its own, and Anthropic refuses argument names with other letters than a-z
 * @throws ConfigError `code: "unknown_option"` for an option nobody reads, `"unknown_provider"`
 * @example
 * const agent = createAgent({ model, tools: await mcpTools(client), middleware: [mcpMiddleware()], checkpointer });
 */
export async function mcpTools<Context = unknown, State = unknown>(
  client: AgentClient<Context, State>,
  options: { servers?: readonly string[]; provider?: ModelProvider } = {},
): Promise<McpTool[]> {
  checkOptions(options, ["servers", "provider"], "mcpTools(client, options)");
  const catalog = await client.listTools(...(options.servers ?? []));
  return catalog.map((entry) => {
    const metadata: McpToolMetadata = { server: entry.server, tool: entry.wireName, annotations: entry.annotations };
    return new McpTool({
      name: entry.name,
      description: entry.description,
      inputSchema: entry.inputSchema,
      provider: options.provider,
      responseFormat: "content_and_artifact",
      metadata: { mcp: metadata },
      func: (args, _manager, config) =>
        // the schema check has found an object; the rest of the configuration comes from the tool node
        callThrough(client, entry, args as Record<string, unknown>, (config ?? {}) as CallConfig),
    });
  });
}
