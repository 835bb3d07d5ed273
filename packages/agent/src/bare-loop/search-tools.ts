import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { ConfigError, isRecord, type JsonObject } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { checkLimit } from "./openai-tools.ts";

/** What a search needs of a tool: LangChain's tools and the catalog's entries both have it. */
export interface SearchableTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema or Zod, of LangChain's tools. */
  readonly schema?: unknown;
  /** JSON Schema, of catalog entries. */
  readonly inputSchema?: unknown;
}

const MAX_WORDS = 2_000;
const MAX_PARAMETERS = 200;

/** Words of a text: letters and digits (also inside camelCase and snake_case), and pairs of Chinese, Japanese and Korean ones. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  const spaced = text.slice(0, 20_000).replace(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2");
  for (const [run] of spaced
    .toLowerCase()
    .matchAll(/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]+|[\p{L}\p{N}]+/gu)) {
    if (words.length >= MAX_WORDS) break;
    if (/^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u.test(run)) {
      const signs = [...run];
      if (signs.length === 1) words.push(run);
      for (let at = 0; at + 1 < signs.length; at += 1) words.push(`${signs[at]}${signs[at + 1]}`);
    } else {
      // a run of letters may hold Chinese ones in its middle; plurals are the commonest difference between words
      words.push(run.length > 3 && /[^sui]s$/.test(run) ? run.slice(0, -1) : run);
    }
  }
  return words;
}

function schemaOf(tool: SearchableTool): unknown {
  if (tool.inputSchema !== undefined) return tool.inputSchema;
  return isInteropZodSchema(tool.schema) ? toJsonSchema(tool.schema) : tool.schema;
}

function parametersOf(tool: SearchableTool): string {
  const schema = schemaOf(tool);
  const properties = isRecord(schema) && isRecord(schema.properties) ? Object.entries(schema.properties) : [];
  return properties
    .slice(0, MAX_PARAMETERS)
    .map(([name, node]) => `${name} ${isRecord(node) && typeof node.description === "string" ? node.description : ""}`)
    .join(" ");
}

interface Indexed<Tool> {
  readonly tool: Tool;
  /** How often each word occurs; words of the name count thrice. */
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

function indexed<Tool extends SearchableTool>(tool: Tool): Indexed<Tool> {
  const counts = new Map<string, number>();
  let length = 0;
  const add = (text: string, weight: number) => {
    for (const word of wordsOf(text)) {
      counts.set(word, (counts.get(word) ?? 0) + weight);
      length += weight;
    }
  };
  add(tool.name, 3);
  add(tool.description ?? "", 1);
  add(parametersOf(tool), 1);
  return { tool, counts, length };
}

/** A search over tools: BM25 over names, descriptions and parameters. */
function indexOf<Tool extends SearchableTool>(tools: readonly Tool[]): (query: string, limit: number) => Tool[] {
  const documents = tools.map(indexed);
  const average = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length) || 1;
  const spread = new Map<string, number>();
  for (const { counts } of documents) for (const word of counts.keys()) spread.set(word, (spread.get(word) ?? 0) + 1);
  return (query, limit) => {
    const asked = [...new Set(wordsOf(query))].slice(0, 100);
    const scored = documents.map(({ tool, counts, length }) => {
      let score = 0;
      for (const word of asked) {
        const count = counts.get(word);
        if (count === undefined) continue;
        const holders = spread.get(word) ?? 0;
        const rarity = Math.log(1 + (documents.length - holders + 0.5) / (holders + 0.5));
        score += (rarity * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * length) / average));
      }
      return { tool, score };
    });
    return scored
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score) // stable: equals stay in the catalog's order
      .slice(0, limit)
      .map(({ tool }) => tool);
  };
}

/**
 * The tools that fit a query best, the best first; none when no word of it occurs. Chinese is compared by pairs of characters.
 * @param options.limit how many at most. Default 8
 * @throws ConfigError `code: "unknown_option"`, `"invalid_option"`
 * @example
 * const fitting = findTools(await client.listTools(), "refund an order", { limit: 5 });
 */
export function findTools<Tool extends SearchableTool>(
  tools: readonly Tool[],
  query: string,
  options: { limit?: number } = {},
): readonly Tool[] {
  checkOptions(options, ["limit"], "findTools(tools, query, options)");
  checkLimit("limit", options.limit);
  return indexOf(tools)(query, options.limit ?? 8);
}

function tokensOf(text: string): number {
  const wide = text.match(/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/gu)?.length ?? 0;
  return Math.ceil(wide + (text.length - wide) / 4);
}

/**
 * About how many tokens the tools take in a prompt: a quarter of the characters, a whole one for each Chinese, Japanese or
 * Korean character. Real tokenisers differ by some 20 %.
 */
export function estimateTokens(tools: readonly SearchableTool[]): number {
  return tools.reduce((sum, tool) => {
    const schema = JSON.stringify(schemaOf(tool) ?? {});
    return sum + tokensOf(tool.name) + tokensOf(tool.description ?? "") + tokensOf(schema) + 12; // the frame around each
  }, 0);
}

/** The tools, in their order, that together stay within `tokens` by `estimateTokens`; one that is too large is passed over. */
export function withinBudget<Tool extends SearchableTool>(tools: readonly Tool[], tokens: number): readonly Tool[] {
  let left = tokens;
  return tools.filter((tool) => {
    const cost = estimateTokens([tool]);
    if (cost > left) return false;
    left -= cost;
    return true;
  });
}

/** Options of `searchTools`. */
export interface SearchToolsOptions {
  /** How many tools one search finds at most. Default 8. */
  limit?: number;
  /** Names of tools the model always sees. */
  always?: readonly string[];
  /** Tokens that found tools may take in a prompt, by `estimateTokens`; those found last stay longest. Default 8,000. */
  maxTokens?: number;
  /** Name of the search tool. Default `"search_tools"`. */
  name?: string;
}

interface Found {
  readonly found: readonly string[];
}

const isFound = (artifact: unknown): artifact is Found =>
  isRecord(artifact) && Array.isArray(artifact.found) && artifact.found.every((name) => typeof name === "string");

/** Names found in a thread, the latest first, with those the model has called. */
function foundIn(messages: readonly BaseMessage[], searchTool: string): string[] {
  const names: string[] = [];
  for (const message of [...messages].reverse()) {
    if (ToolMessage.isInstance(message) && message.name === searchTool && isFound(message.artifact)) {
      names.push(...message.artifact.found);
    } else if (AIMessage.isInstance(message)) {
      names.push(...(message.tool_calls ?? []).map((call) => call.name));
    }
  }
  return [...new Set(names)];
}

/**
 * Middleware for agents with more tools than a prompt holds: the model sees one tool that searches, those in `always`, and what
 * was found in this thread before. All tools stay given to `createAgent`, so that calls, approvals and interceptors work as
 * ever. What was found is kept in the thread's messages and survives a restart with them.
 *
 * @param tools the tools that can be found, as given to the agent; others of the agent are always shown
 * @throws ConfigError `code: "unknown_option"`, `"invalid_option"`, `"unknown_tool"` for an unknown name in `always`,
 *   `"name_collision"` when a tool has the search tool's name
 * @example
 * const tools = await mcpTools(client);
 * createAgent({ model, tools, middleware: [mcpMiddleware(), searchTools(tools, { limit: 5 }), approvals(tools)] });
 */
export function searchTools(tools: readonly SearchableTool[], options: SearchToolsOptions = {}): AgentMiddleware {
  checkOptions(options, ["limit", "always", "maxTokens", "name"], "searchTools(tools, options)");
  checkLimit("limit", options.limit);
  checkLimit("maxTokens", options.maxTokens);
  const { limit = 8, always = [], maxTokens: budget = 8_000, name = "search_tools" } = options;
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.has(name)) {
    throw new ConfigError(`searchTools: a tool is called "${name}" already; choose another name for the search`, {
      code: "name_collision",
    });
  }
  for (const wanted of always) {
    if (byName.has(wanted)) continue;
    const near = didYouMean(wanted, [...byName.keys()]);
    throw new ConfigError(
      `searchTools: always names "${wanted}", which none of the ${tools.length} tools is called${near ? `; did you mean "${near}"?` : ""}`,
      {
        code: "unknown_tool",
        data: { near },
      },
    );
  }
  const search = indexOf(tools);
  const searchTool = new DynamicStructuredTool<JsonObject>({
    name,
    description: `Finds tools. ${tools.length} tools exist, most of them not shown. Search with a few words for what should be done, then call what was found.`,
    schema: {
      type: "object",
      properties: { query: { type: "string", description: "what the tool should do, a few words" } },
      required: ["query"],
    },
    responseFormat: "content_and_artifact",
    func: async (input: unknown): Promise<[string, Found]> => {
      const query = isRecord(input) ? String(input.query ?? "") : "";
      const found = search(query, limit);
      const lines = found.map(
        (tool) => `- ${tool.name}: ${(tool.description ?? "").split("\n")[0]?.slice(0, 200) ?? ""}`,
      );
      const text =
        found.length > 0 ? `Found, and callable from now on:\n${lines.join("\n")}` : "Nothing found. Try other words.";
      return [text, { found: found.map((tool) => tool.name) }];
    },
  });
  return createMiddleware({
    name: "TenonSearchTools",
    tools: [searchTool],
    wrapModelCall: (request, handler) => {
      const known = foundIn(request.state.messages, name).flatMap((item) => byName.get(item) ?? []);
      const shown = new Set([...always, ...withinBudget(known, budget).map((tool) => tool.name)]);
      const visible = request.tools.filter((tool) => {
        const toolName = "name" in tool ? String(tool.name) : undefined; // a provider's own tool may have none
        return toolName === undefined || !byName.has(toolName) || shown.has(toolName);
      });
      return handler({ ...request, tools: visible });
    },
  });
}
