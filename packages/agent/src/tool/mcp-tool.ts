import type { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool, type ToolRunnableConfig } from "@langchain/core/tools";
import type { Command } from "@langchain/langgraph";
import type { CatalogTool } from "@tenon/client";
import { isRecord, type JsonObject } from "@tenon/core";
import { type ModelProvider, modelSchemaOf, restoreArguments } from "../model/provider-schemas/index.ts";
import { insideCreateAgent } from "./checkpoint.ts";
import { endRun, type ToolErrors } from "./failures.ts";
import { failureMessage, type MessageOrigin, settled } from "./messages.ts";

/** Where a LangChain tool comes from, in `tool.metadata.mcp`. */
export interface McpToolMetadata {
  readonly server: string;
  /** Wire name. */
  readonly tool: string;
  readonly annotations: CatalogTool["annotations"];
}

/** The part of a tool's metadata that `mcpTools` wrote, or undefined for other tools. */
export function mcpMetadata(tool: { readonly metadata?: unknown }): McpToolMetadata | undefined {
  const mcp = isRecord(tool.metadata) ? tool.metadata.mcp : undefined;
  // only mcpTools writes this key, always in this shape
  return isRecord(mcp) && typeof mcp.server === "string" ? (mcp as unknown as McpToolMetadata) : undefined;
}

/** What LangChain's and LangGraph's tool nodes add to the configuration of a tool. */
export interface CallConfig extends ToolRunnableConfig {
  readonly state?: unknown;
  readonly store?: unknown;
  readonly toolCallId?: string;
  readonly writer?: ((chunk: unknown) => void) | null;
  readonly executionInfo?: { readonly taskId?: string };
}

/** The id of the model's call, where there is one. */
export function callIdOf(arg: unknown, config: CallConfig | undefined): string | undefined {
  if (isRecord(arg) && arg.type === "tool_call" && typeof arg.id === "string") return arg.id;
  return config?.toolCallId ?? config?.toolCall?.id;
}

/** What a failed call is to the run: a message for the model, or the end. */
export function failed(
  origin: MessageOrigin,
  id: string,
  execution: CallConfig,
  error: unknown,
  toolErrors: ToolErrors | undefined,
): ToolMessage | Command {
  if (toolErrors === "throw") {
    if (insideCreateAgent(execution)) return endRun(error);
    throw error; // a tool node of one's own has an option for what it does with errors
  }
  const message = failureMessage(origin, id, error);
  return toolErrors === "return" ? settled(message) : message;
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

  /** What happens when a call fails; left out, `mcpMiddleware` may decide. */
  toolErrors: ToolErrors | undefined;

  // core validates JSON Schema with a library that throws on schemas it cannot read and reports errors with stack traces
  override async call<
    Arg extends Parameters<DynamicStructuredTool<JsonObject>["call"]>[0],
    Config extends ToolRunnableConfig | undefined,
  >(arg: Arg, config?: Config, tags?: string[]): ReturnType<DynamicStructuredTool<JsonObject>["call"]> {
    const call = isRecord(arg) && arg.type === "tool_call" ? arg : undefined;
    const given: unknown = call ? call.args : arg;
    const input = isRecord(given) ? this.toWire(given) : given;
    // what does not fit is the client's to refuse: it alone knows when a definition is old
    const checked: this = Object.create(this, { schema: { value: {} } });
    const sent = (call ? { ...call, args: input } : input) as Arg; // the same form, its arguments as the server wants them
    return super.call.call(checked, sent, config, tags);
  }
}
