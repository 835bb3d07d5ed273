import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";
import { initChatModel } from "langchain";
import { OfflineModel, type OfflineRules } from "./offline.ts";

/** Options of `resolveModel`. */
export interface ModelOptions {
  /** Key of the provider; by default its usual environment variable is read. */
  apiKey?: string;
  /**
   * Address of the endpoint: OpenAI-compatible for `openai-compatible:`, `openai:` and `deepseek:`, else one that speaks the
   * provider's own protocol (`anthropic:`, without `/v1`; `google-genai:`, without its version).
   */
  baseUrl?: string;
  /** Script of the `offline` model. */
  offline?: OfflineRules;
  /** How freely the model chooses its words. Default: the provider's. */
  temperature?: number;
}

/** Options of a provider's client beside those that all have. */
type Fields = Readonly<Record<string, unknown>>;

interface Provider {
  readonly package: string;
  /** Environment variable of the key; absent where credentials come another way. */
  readonly key?: string;
  /** How its client is told what a request may take; absent where it cannot be told. */
  readonly timeout?: (ms: number) => Fields;
  /** How its client is told another address; absent where it has one of its own. */
  readonly baseUrl?: (url: string) => Fields;
}

const MAX_RETRIES = 2;
const TIMEOUT_MS = 60_000;

/** Clients made over OpenAI's: other servers at another address speak chat completions only. */
const likeOpenAI = {
  timeout: (ms: number) => ({ timeout: ms }),
  baseUrl: (url: string) => ({ configuration: { baseURL: url }, useResponsesApi: false }),
};

const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: { package: "@langchain/openai", key: "OPENAI_API_KEY", ...likeOpenAI },
  deepseek: { package: "@langchain/deepseek", key: "DEEPSEEK_API_KEY", ...likeOpenAI },
  anthropic: {
    package: "@langchain/anthropic",
    key: "ANTHROPIC_API_KEY",
    timeout: (ms) => ({ clientOptions: { timeout: ms } }),
    baseUrl: (url) => ({ anthropicApiUrl: url }),
  },
  "google-genai": {
    package: "@langchain/google-genai",
    key: "GOOGLE_API_KEY",
    baseUrl: (url) => ({ baseUrl: url }),
  },
  "google-vertexai": { package: "@langchain/google-vertexai" },
  mistralai: { package: "@langchain/mistralai", key: "MISTRAL_API_KEY" },
  groq: { package: "@langchain/groq", key: "GROQ_API_KEY" },
  xai: { package: "@langchain/xai", key: "XAI_API_KEY" },
  cohere: { package: "@langchain/cohere", key: "COHERE_API_KEY" },
  cerebras: { package: "@langchain/cerebras", key: "CEREBRAS_API_KEY" },
  together: { package: "@langchain/together-ai", key: "TOGETHER_AI_API_KEY" },
  perplexity: { package: "@langchain/perplexity", key: "PERPLEXITY_API_KEY" },
  bedrock: { package: "@langchain/aws" },
  ollama: { package: "@langchain/ollama" },
};

const OPENAI_COMPATIBLE = "openai-compatible";
function missingPackage(name: string, spec: string, cause: unknown): ConfigError {
  return new ConfigError(`The model "${spec}" needs the package ${name}: npm install ${name}`, {
    code: "missing_package",
    data: { package: name },
    cause,
  });
}

function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (isRecord(error) && error.code === "ERR_MODULE_NOT_FOUND") || error.message.startsWith("Unable to import");
}

async function openAICompatible(spec: string, model: string, options: ModelOptions): Promise<BaseChatModel> {
  const baseURL = options.baseUrl ?? process.env.TENON_MODEL_BASE_URL;
  if (!baseURL) {
    throw new ConfigError(
      `The model "${spec}" needs the address of its endpoint: set TENON_MODEL_BASE_URL or the option baseUrl, for example http://127.0.0.1:8080/v1`,
      { code: "missing_base_url" },
    );
  }
  let openai: typeof import("@langchain/openai");
  try {
    openai = await import("@langchain/openai");
  } catch (cause) {
    throw isMissing(cause) ? missingPackage("@langchain/openai", spec, cause) : cause;
  }
  return new openai.ChatOpenAI({
    model,
    apiKey: options.apiKey ?? process.env.TENON_MODEL_API_KEY ?? "none",
    configuration: { baseURL },
    useResponsesApi: false, // other servers speak chat completions only
    maxRetries: MAX_RETRIES,
    timeout: TIMEOUT_MS,
    ...(options.temperature !== undefined && { temperature: options.temperature }),
  });
}

/** What a provider's client is told besides the model's name. */
function clientFields({ timeout, baseUrl }: Provider, options: ModelOptions): Fields {
  return {
    maxRetries: MAX_RETRIES,
    ...(options.apiKey !== undefined && { apiKey: options.apiKey }),
    ...(options.temperature !== undefined && { temperature: options.temperature }),
    ...timeout?.(TIMEOUT_MS),
    ...(options.baseUrl !== undefined && baseUrl?.(options.baseUrl)),
  };
}

/**
 * A chat model by name: `"offline"`, `"provider:model"` (`"openai:gpt-4.1"`, `"deepseek:deepseek-chat"`,
 * `"anthropic:claude-…"`, `"google-genai:gemini-…"`), or `"openai-compatible:model"` for any endpoint that speaks OpenAI's chat
 * completions. Requests are retried twice and end after 60 s where the provider's client can do that. Give `mcpTools` the
 * option `provider: "gemini"` for Gemini, whose schemas are a dialect of their own.
 *
 * @throws ConfigError `code: "unknown_model"` (with the nearest known provider), `"missing_package"`, `"missing_key"` (naming
 *   the environment variable) or `"missing_base_url"`
 */
export async function resolveModel(spec: string, options: ModelOptions = {}): Promise<BaseChatModel> {
  checkOptions(options, ["apiKey", "baseUrl", "offline", "temperature"], "resolveModel(spec, options)");
  if (spec === "offline") return new OfflineModel(options.offline);
  const colon = spec.indexOf(":");
  const provider = colon < 0 ? spec : spec.slice(0, colon);
  const model = colon < 0 ? "" : spec.slice(colon + 1);
  const known = ["offline", OPENAI_COMPATIBLE, ...Object.keys(PROVIDERS)];
  const detail = Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined;
  if (provider !== OPENAI_COMPATIBLE && !detail) {
    const near = didYouMean(provider, known);
    throw new ConfigError(
      `There is no model provider "${provider}" (from "${spec}"); ${near ? `did you mean "${near}"?` : `known: ${known.join(", ")}`}`,
      { code: "unknown_model", data: { near } },
    );
  }
  if (model === "") {
    throw new ConfigError(`"${spec}" names no model; expected "${provider}:<model>"`, { code: "unknown_model" });
  }
  if (options.baseUrl !== undefined && detail && !detail.baseUrl) {
    const takes = Object.keys(PROVIDERS).filter((name) => PROVIDERS[name]?.baseUrl);
    throw new ConfigError(
      `The option baseUrl does not apply to "${provider}"; it works with ${[OPENAI_COMPATIBLE, ...takes].join(", ")}`,
      {
        code: "unknown_option",
      },
    );
  }
  if (!detail) return openAICompatible(spec, model, options);
  try {
    await import(detail.package);
  } catch (cause) {
    throw isMissing(cause) ? missingPackage(detail.package, spec, cause) : cause;
  }
  if (detail.key !== undefined && options.apiKey === undefined && !process.env[detail.key]) {
    throw new ConfigError(`The model "${spec}" needs a key: set ${detail.key} or the option apiKey`, {
      code: "missing_key",
    });
  }
  return initChatModel(model, { modelProvider: provider, ...clientFields(detail, options) });
}
