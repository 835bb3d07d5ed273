import type {
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplateType,
  Tool,
} from "@modelcontextprotocol/server";
import { type Era, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { Caller } from "../handler/context.ts";
import type { LogLevel } from "../log.ts";
import { TASKS_EXTENSION } from "../task/wire.ts";
import { type Introduction, type Link, openLegacy, openModern, type Sending } from "./link.ts";
import { answerer, type Question, type Script, TestError } from "./script.ts";
import { type Fetchable, parameterHeaders } from "./wire.ts";

export { type Question, type Script, TestError } from "./script.ts";

/** Who the test client is, and what it answers. */
export interface ConnectOptions {
  /** Default `"modern"` (2026-07-28); `"legacy"` opens a session of 2025-11-25. */
  era?: Era;
  /**
   * Answers to the server's questions, by message (or, on the modern era, by key), or a function. Given, the client declares
   * that it can be asked.
   */
  elicit?: Script;
  /** Answers to other requests of the server, by method, such as `"sampling/createMessage"`; declares the capability. */
  respond?: Readonly<Record<string, (params: Record<string, unknown>) => unknown>>;
  /** Who calls, as if a token had been verified; without scopes and claims unless they are given. */
  caller?: Pick<Caller, "subject"> & Partial<Caller>;
  /**
   * Declares the tasks extension: calls that become tasks are followed to their result, and what they ask is answered by `elicit` and
   * `respond`. Modern era only. Default false: tools with `task: "optional"` are called plainly.
   */
  tasks?: boolean;
  /** Declared besides what `elicit` and `respond` imply. */
  capabilities?: Readonly<Record<string, unknown>>;
  /** How the client introduces itself. Default `{ name: "tenon-test", version: "1.0.0" }`. */
  info?: {
    /** Name of the program. */
    name: string;
    /** Its version. */
    version: string;
  };
  /** Least severe level of log messages to receive. Default `"debug"`. */
  logLevel?: LogLevel;
  /** Headers of every request. */
  headers?: Readonly<Record<string, string>>;
  /** Address the requests claim to go to, where the server allows only certain hosts. Default `http://127.0.0.1/mcp`. */
  url?: string;
}

/** A tool's answer, with its text at hand. */
export interface TestToolResult {
  /** The text blocks, one a line. */
  readonly text: string;
  /** All blocks. */
  readonly content: readonly ContentBlock[];
  /** What a program reads: `structuredContent`. */
  readonly structured: unknown;
  /** Whether the tool says that it failed. */
  readonly isError: boolean;
  /** The answer as it came over the wire. */
  readonly raw: CallToolResult;
}

/** Progress that a call reported. */
interface ProgressNote {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** A log message that came over the wire. */
interface LogNote {
  readonly level: string;
  readonly logger?: string;
  readonly data: unknown;
}

/** What goes with one request of a test. */
export interface CallOptions extends Sending {
  /** Sent as `_meta`, besides the protocol's own keys. */
  meta?: Readonly<Record<string, unknown>>;
}

/** A client in the same process: what a test asks, and what it heard. */
export interface TestClient {
  /** The revision spoken. */
  readonly era: Era;
  /** What the server said about itself. */
  readonly server: Readonly<{
    name: string;
    version: string;
    instructions?: string;
    capabilities: Record<string, unknown>;
  }>;
  /** Every question so far, in order. */
  readonly asked: readonly Question[];
  /** Progress of all calls so far, in order. */
  readonly progress: readonly ProgressNote[];
  /** Log messages so far, in order. */
  readonly logs: readonly LogNote[];
  /** The tools this caller sees. */
  listTools(): Promise<Tool[]>;
  /** Calls a tool, and answers what it asks. @throws ProtocolError `rpc_error` for a refusal, TestError for a question without an answer */
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<TestToolResult>;
  /** The resources this caller sees. */
  listResources(): Promise<Resource[]>;
  /** The families of resources this caller sees. */
  listResourceTemplates(): Promise<ResourceTemplateType[]>;
  /** What a resource holds. */
  readResource(uri: string, options?: CallOptions): Promise<ReadResourceResult["contents"]>;
  /** The prompts this caller sees. */
  listPrompts(): Promise<Prompt[]>;
  /** The messages of a prompt. */
  getPrompt(name: string, args?: Record<string, string>, options?: CallOptions): Promise<GetPromptResult["messages"]>;
  /** Any other request, for example of an extension. */
  request(method: string, params?: Record<string, unknown>, options?: CallOptions): Promise<Record<string, unknown>>;
  /** Ends the connection; the server stays as it is. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const OPTIONS = [
  "era",
  "elicit",
  "respond",
  "caller",
  "tasks",
  "capabilities",
  "info",
  "logLevel",
  "headers",
  "url",
] as const;
const MAX_PAGES = 1_000;

function capabilitiesOf({ elicit, respond = {}, tasks, capabilities }: ConnectOptions): Record<string, unknown> {
  const methods = Object.keys(respond);
  return {
    ...(elicit && { elicitation: { form: {}, url: {} } }),
    ...(methods.includes("sampling/createMessage") && { sampling: {} }),
    ...(methods.includes("roots/list") && { roots: {} }),
    ...(tasks && { extensions: { [TASKS_EXTENSION]: {} } }),
    ...capabilities,
  };
}

/**
 * Connects to a server in memory: no socket, no child process, the same code path as HTTP.
 *
 * @throws ConfigError for an unknown option, ProtocolError when the server refuses the client
 * @example
 * const client = await connect(server, { elicit: { "Refund 500?": "confirm" } });
 * expect((await client.callTool("refund", { orderId: "A" })).text).toBe("refunded");
 */
export async function connect(server: Fetchable, options: ConnectOptions = {}): Promise<TestClient> {
  checkOptions(options, OPTIONS, "connect(server, options)");
  checkOptions(options.info ?? {}, ["name", "version"], "connect(server, options).info");
  const { era = "modern", respond = {} } = options;
  const asked: Question[] = [];
  const progress: ProgressNote[] = [];
  const logs: LogNote[] = [];
  const me: Introduction = {
    url: options.url ?? "http://127.0.0.1/mcp",
    headers: options.headers ?? {},
    client: options.info ?? { name: "tenon-test", version: "1.0.0" },
    capabilities: capabilitiesOf(options),
    followsTasks: options.tasks ?? false,
    logLevel: options.logLevel ?? "debug",
    fetchOptions: options.caller ? { caller: { scopes: [], claims: {}, ...options.caller } } : {},
    respond(method, params) {
      const answer = Object.hasOwn(respond, method) ? respond[method] : undefined;
      if (answer) return answer(params);
      throw new TestError(
        `The server sent ${method} and the test has no answer; give connect(server, { respond: … })`,
        {
          code: "unanswered_question",
          data: { method },
        },
      );
    },
    onNotification(method, { progressToken: _token, _meta, ...params }) {
      // notifications carry what their method says: the server's protocol layer wrote them
      if (method === "notifications/progress") progress.push(params as unknown as ProgressNote);
      if (method === "notifications/message") logs.push(params as unknown as LogNote);
    },
  };
  const link: Link = await (era === "modern" ? openModern(server, me) : openLegacy(server, me));
  const request = async (
    method: string,
    params: Record<string, unknown> = {},
    callOptions: CallOptions = {},
  ): Promise<Record<string, unknown>> => {
    checkOptions(callOptions, ["meta", "signal", "headers"], `${method} of the test client, options`);
    const { meta, ...sending } = callOptions;
    return link.request(method, { ...params, ...(meta && { _meta: meta }) }, answerer(options.elicit, asked), sending);
  };

  async function all<T>(method: string, key: string): Promise<T[]> {
    const items: T[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const result = await request(method, cursor === undefined ? {} : { cursor });
      items.push(...((result[key] as T[] | undefined) ?? [])); // the method's result holds this list
      cursor = result.nextCursor;
      if (cursor === undefined) return items;
    }
    throw new TestError(`${method} does not end: more than ${MAX_PAGES} pages`, { code: "pagination_loop" });
  }
  let schemas: Promise<Map<string, unknown>> | undefined;
  const schemaOf = async (name: string): Promise<unknown> => {
    schemas ??= all<Tool>("tools/list", "tools").then((tools) => new Map(tools.map((t) => [t.name, t.inputSchema])));
    return (await schemas).get(name);
  };
  const { _meta: about = {}, serverInfo = isRecord(about) ? about["io.modelcontextprotocol/serverInfo"] : undefined } =
    link.server;
  const info = isRecord(serverInfo) ? serverInfo : {};

  const client: TestClient = {
    era,
    server: {
      name: String(info.name ?? server.name),
      version: String(info.version ?? ""),
      capabilities: isRecord(link.server.capabilities) ? link.server.capabilities : {},
      ...(typeof link.server.instructions === "string" && { instructions: link.server.instructions }),
    },
    asked,
    progress,
    logs,
    listTools: () => all("tools/list", "tools"),
    async callTool(name, args = {}, callOptions = {}) {
      const headers =
        era === "modern"
          ? { ...parameterHeaders(await schemaOf(name), args), ...callOptions.headers }
          : callOptions.headers;
      const sent = { ...callOptions, ...(headers && { headers }) };
      // the method's result, parsed by the server's protocol layer before it left
      const raw = (await request("tools/call", { name, arguments: args }, sent)) as unknown as CallToolResult;
      const content = raw.content ?? [];
      return {
        text: content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"),
        content,
        structured: raw.structuredContent,
        isError: raw.isError === true,
        raw,
      };
    },
    listResources: () => all("resources/list", "resources"),
    listResourceTemplates: () => all("resources/templates/list", "resourceTemplates"),
    async readResource(uri, callOptions) {
      const result = await request("resources/read", { uri }, callOptions);
      return result.contents as ReadResourceResult["contents"]; // as for tools
    },
    listPrompts: () => all("prompts/list", "prompts"),
    async getPrompt(name, args = {}, callOptions) {
      const result = await request("prompts/get", { name, arguments: args }, callOptions);
      return result.messages as GetPromptResult["messages"]; // as for tools
    },
    request,
    close: () => link.close(),
    [Symbol.asyncDispose]: () => link.close(),
  };
  return client;
}
