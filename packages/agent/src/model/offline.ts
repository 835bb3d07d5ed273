import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { ConfigError, isRecord, messageOf } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";

/** A tool bound to the offline model. */
export interface OfflineTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** What a tool answered since the person last spoke. */
export interface OfflineResult {
  readonly name: string;
  readonly text: string;
  readonly status: "success" | "error";
  readonly artifact?: unknown;
  readonly toolCallId: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** What the rules decide from. */
export interface OfflineTurn {
  /** The person's last message. */
  readonly text: string;
  readonly messages: readonly BaseMessage[];
  readonly system: string;
  readonly tools: readonly OfflineTool[];
  readonly results: readonly OfflineResult[];
  /** How often the model has spoken since the person's last message. */
  readonly step: number;
}

/** What the offline model says and which tools it calls. */
export interface OfflineReply {
  readonly text?: string;
  readonly calls?: ReadonlyArray<{ readonly name: string; readonly args: Readonly<Record<string, unknown>> }>;
}

/** An application's script for its offline model. */
export interface OfflineRules {
  /** What the model says next. */
  reply(turn: OfflineTurn): OfflineReply | Promise<OfflineReply>;
}

interface OfflineCallOptions extends BaseChatModelCallOptions {
  offlineTools?: readonly OfflineTool[];
}

const NAME = "tenon-offline";
const METADATA = { model_provider: NAME, model_name: NAME };

function toOfflineTool(tool: BindToolsInput): OfflineTool[] {
  if (!isRecord(tool)) return [];
  // convertToOpenAITool takes LangChain's tools; the formats of providers already have a `function`
  const described: unknown = "function" in tool ? tool : convertToOpenAITool(tool);
  const fn = isRecord(described) ? described.function : undefined;
  if (!isRecord(fn) || typeof fn.name !== "string") return [];
  const { name, description, parameters } = fn;
  return [{ name, description: String(description ?? ""), schema: isRecord(parameters) ? parameters : {} }];
}

function readTurn(messages: readonly BaseMessage[], tools: readonly OfflineTool[]): OfflineTurn {
  const lastHuman = messages.findLastIndex((message) => HumanMessage.isInstance(message));
  const since = messages.slice(lastHuman + 1);
  const calls = new Map(
    since.flatMap((message) =>
      AIMessage.isInstance(message) ? (message.tool_calls ?? []).map((call) => [call.id, call] as const) : [],
    ),
  );
  const results = since
    .filter((message) => ToolMessage.isInstance(message))
    .map((message): OfflineResult => {
      const call = calls.get(message.tool_call_id);
      return {
        name: call?.name ?? message.name ?? "",
        text: message.text,
        status: message.status ?? "success",
        ...(message.artifact !== undefined && { artifact: message.artifact }),
        toolCallId: message.tool_call_id,
        args: call?.args ?? {},
      };
    });
  return {
    text: messages[lastHuman]?.text.trim() ?? "",
    messages,
    system: messages
      .filter((message) => SystemMessage.isInstance(message))
      .map((message) => message.text)
      .join("\n"),
    tools,
    results,
    step: since.filter((message) => AIMessage.isInstance(message)).length,
  };
}

const listOf = (tools: readonly OfflineTool[]) => tools.map((tool) => tool.name).join(", ") || "none";

/** `/tool name {json}`: tries a tool of any server without a model. */
function commandReply(turn: OfflineTurn): OfflineReply | undefined {
  const match = /^\/tool(?:\s+(\S+)\s*([\s\S]*))?$/.exec(turn.text);
  if (!match) return undefined;
  if (turn.results.length > 0) return { text: turn.results.map((result) => result.text).join("\n") };
  const [, name, json = ""] = match;
  if (name === undefined) return { text: `Usage: /tool name {json}. Tools: ${listOf(turn.tools)}.` };
  if (!turn.tools.some((tool) => tool.name === name)) {
    const near = didYouMean(
      name,
      turn.tools.map((tool) => tool.name),
    );
    return {
      text: `There is no tool "${name}"; ${near ? `did you mean "${near}"?` : `tools: ${listOf(turn.tools)}.`}`,
    };
  }
  let args: unknown;
  try {
    args = json === "" ? {} : JSON.parse(json);
  } catch (error) {
    const reason = messageOf(error);
    return { text: `The arguments after "${name}" are not JSON (${reason}). Example: /tool ${name} {"key": "value"}` };
  }
  return isRecord(args)
    ? { calls: [{ name, args }] }
    : { text: `The arguments of "${name}" must be a JSON object, for example {"key": "value"}.` };
}

const defaultRules: OfflineRules = {
  reply: (turn) => ({
    text: `I am the offline stand-in, not a language model; set a model to talk freely. Tools I could call: ${listOf(turn.tools)}. Try one with /tool name {json}.`,
  }),
};

function callIds(messages: readonly BaseMessage[], count: number): string[] {
  const used = new Set(
    messages.flatMap((message) =>
      AIMessage.isInstance(message) ? (message.tool_calls ?? []).map((call) => call.id) : [],
    ),
  );
  const base = messages.filter((message) => !SystemMessage.isInstance(message)).length;
  return Array.from({ length: count }, (_, index) => {
    let id = `offline_${base}_${index}`;
    for (let again = 1; used.has(id); again += 1) id = `offline_${base}_${index}_${again}`; // a shortened history
    used.add(id);
    return id;
  });
}

/**
 * A deterministic stand-in for a chat model, for demonstrations and tests without a key: it follows the application's rules,
 * streams, calls tools, and lets a person call one with `/tool name {json}`. It never pretends: its messages carry
 * `response_metadata.model_name: "tenon-offline"` and `additional_kwargs.offline: true`.
 *
 * @example
 * new OfflineModel({ reply: ({ results }) => results[0] ? { text: results[0].text } : { calls: [{ name: "add", args: { a: 1, b: 2 } }] } })
 */
export class OfflineModel extends BaseChatModel<OfflineCallOptions> {
  readonly #rules: OfflineRules;

  static override lc_name(): string {
    return "OfflineModel";
  }

  constructor(rules: OfflineRules = defaultRules) {
    super({});
    if (typeof rules.reply !== "function") {
      checkOptions(rules, ["reply"], "new OfflineModel(rules)"); // says which key may be meant
      throw new ConfigError("new OfflineModel(rules): rules.reply must be a function", { code: "invalid_option" });
    }
    this.#rules = rules;
  }

  override _llmType(): string {
    return NAME;
  }

  override bindTools(tools: BindToolsInput[], kwargs?: Partial<OfflineCallOptions>) {
    return this.withConfig({ ...kwargs, offlineTools: tools.flatMap(toOfflineTool) });
  }

  async #reply(messages: readonly BaseMessage[], options: this["ParsedCallOptions"]) {
    const turn = readTurn(messages, options.offlineTools ?? []);
    const { text = "", calls = [] } = commandReply(turn) ?? (await this.#rules.reply(turn));
    const ids = callIds(messages, calls.length);
    return { text, calls: calls.map((call, i) => ({ name: call.name, args: { ...call.args }, id: ids[i] ?? "" })) };
  }

  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const { text, calls } = await this.#reply(messages, options);
    const message = new AIMessage({
      content: text,
      tool_calls: calls.map((call) => ({ ...call, type: "tool_call" as const })),
      additional_kwargs: { offline: true },
      response_metadata: { ...METADATA },
    });
    return { generations: [{ text, message }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text, calls } = await this.#reply(messages, options);
    for (const piece of text.match(/\s*\S{1,12}\s*/g) ?? []) {
      const chunk = new ChatGenerationChunk({ text: piece, message: new AIMessageChunk({ content: piece }) });
      yield chunk;
      await runManager?.handleLLMNewToken(piece, undefined, undefined, undefined, undefined, { chunk });
    }
    // metadata comes once: merging chunks joins strings
    const last = new ChatGenerationChunk({
      text: "",
      message: new AIMessageChunk({
        content: "",
        tool_call_chunks: calls.map((call, index) => ({
          name: call.name,
          args: JSON.stringify(call.args),
          id: call.id,
          index,
          type: "tool_call_chunk" as const,
        })),
        additional_kwargs: { offline: true },
        response_metadata: { ...METADATA },
      }),
    });
    yield last;
    await runManager?.handleLLMNewToken("", undefined, undefined, undefined, undefined, { chunk: last });
  }
}
