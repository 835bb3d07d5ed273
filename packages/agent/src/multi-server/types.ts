import type { MessageContent, ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import type {
  ElicitationAnswer,
  ElicitationHandler,
  ElicitationRequest,
  HttpServerConfig,
  LogEvent,
  StdioServerConfig,
  ToolRuntime,
  TransportServerConfig,
} from "@tenon/client";
import type { ModelProvider } from "../model/provider-schemas/index.ts";
import type { AgentInterceptor, McpToolsOptions } from "../tool/tools.ts";

/** Kinds of content a tool may answer with. */
export const CONTENT_KINDS = ["text", "image", "audio", "resource", "resource_link"] as const;
export type ContentKind = (typeof CONTENT_KINDS)[number];

/** Where each kind of content goes: before the model (`content`) or only to the program (`artifact`). */
export type OutputHandling = "content" | "artifact" | Partial<Record<ContentKind, "content" | "artifact">>;

interface Common {
  /** Where each kind of content goes: before the model (`content`) or only to the program (`artifact`). Default: `content`. */
  outputHandling?: OutputHandling;
  /** Milliseconds without an answer until a tool call fails. */
  defaultToolTimeout?: number;
}

/** Accepted, so that a configuration works as it is. */
interface Again {
  /** Never off: a lost server is opened again when it is next used. */
  enabled?: true;
  /** Not needed. */
  maxAttempts?: number;
  /** Not needed. Milliseconds. */
  delayMs?: number;
}

/** A server started as a child process. Tenon's own options of such a server (`sandbox`, `include`, …) work too. */
export interface StdioConnection extends StdioServerConfig, Common {
  /** Says that it is a child process; not needed. */
  transport?: "stdio";
  /** The same as `transport`. */
  type?: "stdio";
  /** Accepted and not needed: the protocol is UTF-8. */
  encoding?: "utf8" | "utf-8";
  /** Lines go to `onMessage` with the logger `stderr` where that is set, else to this process's stderr; `ignore`: nowhere. */
  stderr?: "inherit" | "ignore" | "pipe" | "overlapped";
  /** Accepted and not needed: a process that ended is started again when it is next used. */
  restart?: Again;
}

/** A server reached over HTTP. Tenon's own options of such a server (`ca`, `socketPath`, `include`, …) work too. */
export interface HttpConnection extends HttpServerConfig, Common {
  /** All are the same: Streamable HTTP first, the transport before it where the server refuses that. */
  transport?: HttpTransport;
  /** The same as `transport`. */
  type?: HttpTransport;
  /** Accepted and not needed: a lost connection is opened again when it is next used. */
  reconnect?: Again;
  /** Accepted and not needed: it is always so. */
  automaticSSEFallback?: true;
}

export type HttpTransport = "http" | "sse" | "streamable_http" | "streamable-http";

/** A server behind any transport of the SDK, for example one with an `authProvider`. */
export interface TransportConnection extends TransportServerConfig, Common {}

/** How a server is reached, in the shape of `@langchain/mcp-adapters`. */
export type Connection = StdioConnection | HttpConnection | TransportConnection;

/** Where a log message or a change comes from. */
export interface ServerSource {
  readonly server: string;
  readonly options: Connection;
}

export interface ProgressUpdate {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
  /** 0 to 100, where a total is known. */
  readonly percentage?: number;
}

export type ProgressSource =
  | { readonly type: "tool"; readonly server: string; readonly name: string; readonly args: unknown }
  | { readonly type: "unknown" };

/** Which server, and which tool where a call is under way. */
export interface CallbackContext {
  readonly serverName: string;
  readonly toolName?: string;
}

/** Callbacks in the form the Python package has them. */
export interface Callbacks {
  /** A call is further than it was. */
  onProgress?: (
    progress: number,
    total: number | undefined,
    message: string | undefined,
    context: CallbackContext,
  ) => void;
  /** A server says something. */
  onLoggingMessage?: (params: LogEvent, context: CallbackContext) => void;
  /** A server asks the person something: answers it. */
  onElicitation?: (
    request: ElicitationRequest,
    context: CallbackContext,
  ) => ElicitationAnswer | Promise<ElicitationAnswer>;
}

/** A tool call on its way out, as `beforeToolCall` sees it. */
export interface HookRequest {
  readonly serverName: string;
  /** The tool's name on the wire. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** Content and artifact of a tool's answer. */
export type HookOutput = readonly [content: MessageContent, artifact: readonly unknown[]];

/** An answered call, as `afterToolCall` sees it. */
export interface HookResult extends HookRequest {
  readonly result: HookOutput;
}

/** The run a hook is called in. */
export type HookRuntime = ToolRuntime & { readonly configurable: { readonly thread_id?: string } };

/** What is called around each tool call. */
export interface ToolHooks {
  /** Before the call: may change arguments (merged over the present ones) and add headers (HTTP only). */
  beforeToolCall?: (
    request: HookRequest,
    state: unknown,
    runtime: HookRuntime,
  ) => HookChange | undefined | Promise<HookChange | undefined> | Promise<void>;
  /** After the call: may replace the answer. Not called for failed calls. */
  afterToolCall?: (
    result: HookResult,
    state: unknown,
    runtime: HookRuntime,
  ) => HookReplacement | undefined | Promise<HookReplacement | undefined> | Promise<void>;
}

export interface HookChange {
  readonly args?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HookReplacement {
  readonly result: string | ToolMessage | Command | HookOutput;
}

/** What `onConnectionError` is called with. */
export interface ConnectionFailure {
  readonly serverName: string;
  readonly error: unknown;
}

/** What `new MultiServerMCPClient(config)` takes, in the shape of `@langchain/mcp-adapters`. */
export interface MultiServerConfig extends Common, ToolHooks {
  /** The servers by the name this program has for each. */
  mcpServers: Readonly<Record<string, Connection>>;
  /** True: `getTools` rejects when a server has a tool that cannot be used. Default: such tools are left out. */
  throwOnLoadError?: boolean;
  /** Puts `server__` before every tool's name. Default false. */
  prefixToolNameWithServerName?: boolean;
  /** Put before every tool's name, followed by `__`. */
  additionalToolNamePrefix?: string;
  /** True: images, audio and files as LangChain's standard blocks. Default false. */
  useStandardContentBlocks?: boolean;
  /** `"throw"` (default), `"ignore"`, or a function that may throw. */
  onConnectionError?: "throw" | "ignore" | ((failure: ConnectionFailure) => void);
  /**
   * True: a failed call is a message for the model. False: it ends the run with a typed error. Left out, it is a message unless
   * `mcpMiddleware` says otherwise.
   */
  handleToolErrors?: boolean;
  /** Whose rules the tools' schemas must fit, as in `mcpTools`. */
  provider?: ModelProvider;
  /** Interceptors around every call, the outermost first. */
  toolInterceptors?: readonly AgentInterceptor[];
  /** Callbacks in the form the Python package has them. */
  callbacks?: Callbacks;
  /** As in `createClient`: a handler, or `"interrupt"` for questions that survive a restart. */
  elicitation?: ElicitationHandler | "interrupt";
  /** As in `mcpTools`: what becomes of a question that an older server asks inside a call, with `elicitation: "interrupt"`. */
  legacyQuestions?: McpToolsOptions["legacyQuestions"];
  /** Least severe level asked of servers while somebody listens. Default `"info"`; `setLoggingLevel` changes it. */
  logLevel?: LogEvent["level"];
  /** A server says something. */
  onMessage?: (message: LogEvent, source: ServerSource) => void;
  /** A call is further than it was. */
  onProgress?: (progress: ProgressUpdate, source: ProgressSource) => void;
  /** A server was reached for the first time, or again after it was lost. */
  onInitialized?: (source: ServerSource) => void;
  /** A server says that its tools changed. */
  onToolsListChanged?: (source: ServerSource, again: ServerSource) => void;
}

/** Headers for this one request, besides the server's own. */
export interface RequestHeaders {
  readonly headers?: Readonly<Record<string, string>>;
}
