import type {
  CallToolResult,
  ContentBlock,
  CreateMessageRequest,
  CreateMessageResult,
  InputRequiredResult,
  LoggingLevel,
  Root,
  ToolAnnotations,
  Transport,
} from "@modelcontextprotocol/client";
import type { Era, JsonObject } from "@tenon/core";
import type { Sandbox } from "./connection/launch.ts";
import type { ToolSelection } from "./filters.ts";
import type { OnFirstStart, PinOptions } from "./trust/gate.ts";
import type { ServerTrust, UrlHost } from "./trust/types.ts";

/** A server reached over Streamable HTTP. */
export interface HttpServerConfig extends ToolSelection, ServerTrust {
  /** Full address of the endpoint, for example `http://127.0.0.1:8030/mcp`. */
  url: string;
  /** Sent with every request to this server and to no other. */
  headers?: Record<string, string>;
  /** When true, `listTools()` fails if this server cannot be reached. Default false: it is reported by `servers()`. */
  required?: boolean;
  /** Milliseconds until a connection attempt counts as failed. Default 5,000. */
  connectTimeoutMs?: number;
  /** Path of a unix socket to connect to; the address then only says host name and path. */
  socketPath?: string;
  /** Certificates (PEM) trusted instead of the system's. Verification cannot be switched off. */
  ca?: string | string[];
  /** Bytes that one message of this server may have; a larger one fails its call. Default 16 MiB. */
  maxResponseBytes?: number;
}

/** A server started as a child process that speaks over its standard input and output. */
export interface StdioServerConfig extends ToolSelection, ServerTrust {
  command: string;
  args?: string[];
  /** Added to a small safe base environment (PATH, HOME, locale); nothing else of this process is passed on. */
  env?: Record<string, string>;
  cwd?: string;
  /** Starts it with less power: as another user, or in a container without network. */
  sandbox?: Sandbox;
  required?: boolean;
  connectTimeoutMs?: number;
  /** Bytes that one message of this server may have; a larger one fails its call. Default 16 MiB. */
  maxResponseBytes?: number;
  /**
   * Tool calls in flight at once; more wait for their turn. Default: no limit. With 1, every log message of a server of
   * the older revision is known to belong to the one call that runs.
   */
  concurrency?: number;
}

/** A server behind any transport of the SDK; the function is called once per connection. */
export interface TransportServerConfig extends ToolSelection, ServerTrust {
  transport: () => Transport;
  required?: boolean;
  connectTimeoutMs?: number;
}

export type ServerConfig = HttpServerConfig | StdioServerConfig | TransportServerConfig;

/** What one call carries from the program around it: who asks, in which thread, with which state. */
export interface ToolRuntime<Context = unknown, State = unknown> {
  readonly context?: Context;
  readonly state?: State;
  /** LangGraph's long-term store, where an agent makes the call. */
  readonly store?: unknown;
  readonly toolCallId?: string;
  readonly threadId?: string;
  /** Writes to the run's custom stream, where an agent makes the call. */
  readonly writer?: (chunk: unknown) => void;
}

/** What an interceptor may replace in a request. `headers` and `meta` are merged over the present ones. */
export interface ToolCallChanges {
  name?: string;
  args?: Record<string, unknown>;
  headers?: Record<string, string>;
  meta?: Record<string, unknown>;
  /** Ends the inner call as well as the present signal, never instead of it. */
  signal?: AbortSignal;
}

/** A tool as its server describes it, before interceptors change what a model sees. */
export type ToolDefinition = Omit<CatalogTool, "name">;

/** One tool call on its way through the interceptors. Frozen: `with` returns a changed copy. */
export interface ToolCallRequest<Runtime extends ToolRuntime = ToolRuntime> {
  readonly server: string;
  /** The tool's name on the wire. */
  readonly name: string;
  /** Names the call in events, logs and audit entries; unique per call of this client, the same however often it is sent. */
  readonly callId: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
  /** A changed copy. @throws ConfigError `unknown_option` for what may not change (server, runtime, callId) */
  with(changes: ToolCallChanges): ToolCallRequest<Runtime>;
  /**
   * The tool as its server describes it, from the catalog as last seen; the server is asked where it is not known yet.
   * Undefined when the server does not list it. Annotations are the server's word.
   * @throws TenonError when the server cannot be asked
   */
  definition(): Promise<ToolDefinition | undefined>;
}

/** What a tool answered. */
export interface ToolResult {
  readonly content: readonly ContentBlock[];
  readonly structured?: unknown;
  readonly isError: boolean;
  readonly meta: Readonly<Record<string, unknown>>;
  /** The answer as it came over the wire. */
  readonly raw: CallToolResult;
  /** Why this client made an error of it: `invalid_arguments` (nothing was sent) or `invalid_output`. */
  readonly problem?: { readonly code: string; readonly data?: unknown };
}

/** What leaves the onion: a tool's result, or what an interceptor made of it (`Extra`, for example a LangGraph Command). */
export type ToolCallOutcome<Extra = never> = ToolResult | Extra;

/** What an interceptor calls to go on: the next interceptor, at last the wire. */
export type Next<Runtime extends ToolRuntime = ToolRuntime, Extra = never> = (
  request: ToolCallRequest<Runtime>,
) => Promise<ToolCallOutcome<Extra>>;

/** Changes what a model sees of a tool: description, schema, title, annotations. Its names stay. */
export type CatalogChange = (tool: CatalogTool) => CatalogTool;

/**
 * A layer around every tool call. The first in the list is the outermost. It may answer without calling `next`, call it
 * several times, change the request with `request.with(…)`, or replace the outcome.
 */
export interface Interceptor<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  (request: ToolCallRequest<Runtime>, next: Next<Runtime, Extra>): Promise<ToolCallOutcome<Extra>>;
  /** Applied by `listTools()`; calls still go to the tool as its server describes it. */
  readonly catalog?: CatalogChange;
}

/**
 * An interceptor for clients with this runtime and any outcome. The second signature is never called: it keeps such an
 * interceptor from having a say in which outcomes `createClient` infers.
 */
export interface RuntimeInterceptor<Runtime extends ToolRuntime> {
  <Extra>(request: ToolCallRequest<Runtime>, next: Next<Runtime, Extra>): Promise<ToolCallOutcome<Extra>>;
  (request: ToolCallRequest<Runtime>, next: never): Promise<never>;
  readonly catalog?: CatalogChange;
}

/** An interceptor for clients with any runtime and any outcome, as those that come with the package are. */
export interface AnyInterceptor {
  <Runtime extends ToolRuntime, Extra>(
    request: ToolCallRequest<Runtime>,
    next: Next<Runtime, Extra>,
  ): Promise<ToolCallOutcome<Extra>>;
  /** Never called, as above. */
  (request: never, next: never): Promise<never>;
  readonly catalog?: CatalogChange;
}

/** Which call an event belongs to. */
export interface EventSource {
  readonly server: string;
  /** The tool's wire name; absent when the server sent the event outside a call. */
  readonly tool?: string;
  /** The prompt's name, or the resource's address, where one of those was asked for. */
  readonly prompt?: string;
  readonly uri?: string;
  /** Unique per call of this client; absent outside a call. */
  readonly callId?: string;
}

export interface ProgressEvent {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
  /** 0 to 100 with one decimal, where a total is known. */
  readonly percent?: number;
}

export interface LogEvent {
  readonly level: LoggingLevel;
  readonly logger?: string;
  readonly data: unknown;
}

export interface ClientEvents {
  onProgress?: (event: ProgressEvent, source: EventSource) => void;
  onLog?: (event: LogEvent, source: EventSource) => void;
  /** A server says that its tools changed; the next `listTools()` asks it anew. */
  onCatalogChanged?: (event: { readonly server: string }) => void;
  /** A server asks the person something. Only told: the `elicitation` handler, or the call's driver, answers. */
  onElicitation?: (request: ElicitationRequest, source: EventSource) => void;
  /** A server's connection changed. */
  onServerState?: (info: ServerInfo) => void;
  /** An event handler threw; the call goes on. Default: a line on stderr. */
  onHandlerError?: (error: unknown) => void;
}

/** One entry of a form, parsed from the restricted schema of an elicitation. */
export type Field =
  | ({
      kind: "text";
      minLength?: number;
      maxLength?: number;
      pattern?: string;
      format?: string;
      default?: string;
    } & FieldBase)
  | ({ kind: "number"; integer: boolean; minimum?: number; maximum?: number; default?: number } & FieldBase)
  | ({ kind: "boolean"; default?: boolean } & FieldBase)
  | ({ kind: "choice"; options: readonly FieldOption[]; default?: string } & FieldBase)
  | ({
      kind: "choices";
      options: readonly FieldOption[];
      minItems?: number;
      maxItems?: number;
      default?: readonly string[];
    } & FieldBase);

interface FieldBase {
  /** Key of the answer's content. */
  name: string;
  title?: string;
  description?: string;
  required: boolean;
}

export interface FieldOption {
  readonly value: string;
  readonly title: string;
}

/** A question a server asks the person. */
export type ElicitationRequest =
  | { readonly mode: "form"; readonly message: string; readonly fields: readonly Field[]; readonly schema: JsonObject }
  | {
      readonly mode: "url";
      readonly message: string;
      /** Checked: https, or http on this machine; no credentials; an expected host. Never fetched by the client. */
      readonly url: string;
      readonly host: UrlHost;
      readonly elicitationId?: string;
    };

/** A person's answer. `content` is absent for url questions. */
export type ElicitationAnswer =
  | { readonly action: "accept"; readonly content?: Readonly<Record<string, string | number | boolean | string[]>> }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

export type ElicitationHandler = (
  request: ElicitationRequest,
  source: EventSource & { readonly signal: AbortSignal },
) => Promise<ElicitationAnswer> | ElicitationAnswer;

/**
 * A server wants a model to answer.
 * @deprecated by the protocol; for peers that still use it. Earliest removal 2027-07-28.
 */
export type SamplingRequest = CreateMessageRequest["params"];
/** @deprecated by the protocol; earliest removal 2027-07-28. */
export type SamplingAnswer = CreateMessageResult;
/**
 * Lets a model answer. A function alone is also the approval: ask the person in it, and throw to refuse.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export type SamplingHandler = (
  request: SamplingRequest,
  source: EventSource & { readonly signal: AbortSignal },
) => Promise<SamplingAnswer> | SamplingAnswer;
/**
 * Sampling with the person's approval as a step of its own; anything but true refuses.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export interface ApprovedSampling {
  approve: (
    request: SamplingRequest,
    source: EventSource & { readonly signal: AbortSignal },
  ) => Promise<boolean> | boolean;
  handler: SamplingHandler;
}
/**
 * The directories a server may work in, as `file://` addresses: a list, or a function asked each time.
 * @deprecated by the protocol; earliest removal 2027-07-28.
 */
export type Roots = readonly Root[] | ((source: EventSource) => Promise<readonly Root[]> | readonly Root[]);

/** Answer of one leg on the wire: the final result, or questions with an opaque state. Plain JSON. */
export type WireResult = CallToolResult | InputRequiredResult;

/** One leg: the first sending of a call, or a retry that carries answers. */
export interface Leg {
  readonly server: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** 0 for the first sending, then one more per answered round. */
  readonly round: number;
}

/**
 * Carries out the legs of one call when it must survive more than this process: the agent memoises each leg in a checkpoint
 * and turns questions into interrupts. Without a driver, `callTool` sends each leg itself and asks the `elicitation` handler.
 */
export interface CallDriver {
  /** Returns what `send` returns, or what it returned for this leg before. */
  leg(send: () => Promise<WireResult>, leg: Leg): Promise<WireResult>;
  /** Answers all questions of one round, by key. May throw to suspend the call. */
  answer(
    questions: Readonly<Record<string, ElicitationRequest>>,
    leg: Leg,
  ): Promise<Readonly<Record<string, ElicitationAnswer>>>;
  /**
   * A server of the older revision asks inside the running leg. Returns the answer where it is known already; with undefined
   * the leg is ended unanswered, and `send` rejects with `question_pushed`. Left out: such a question is `legacy_question`.
   */
  pushed?(question: ElicitationRequest): ElicitationAnswer | undefined;
}

export interface CallOptions<Runtime extends ToolRuntime = ToolRuntime> {
  signal?: AbortSignal;
  /** Milliseconds without an answer or progress until the call fails. Default 60,000. */
  timeoutMs?: number;
  /** Milliseconds after which a leg fails even while progress arrives. Default 600,000. Time spent on questions does not count. */
  totalTimeoutMs?: number;
  headers?: Record<string, string>;
  meta?: Record<string, unknown>;
  runtime?: Runtime;
  /** Progress of this call only, besides `events.onProgress`. */
  onProgress?: ClientEvents["onProgress"];
  /** Log messages of this call only, besides `events.onLog`. */
  onLog?: ClientEvents["onLog"];
  /** Bytes its answer may have. Default: the client's `maxResultBytes`. What one message may have, the server's `maxResponseBytes` says. */
  maxResultBytes?: number;
  driver?: CallDriver;
}

/** Options of one reading of a resource or one rendering of a prompt. */
export type ReadOptions = Omit<CallOptions, "driver" | "runtime">;

/** How model-side names are made: `prefixed` is `mcp_{server}_{tool}`, `plain` is the tool's own name. */
export type Naming = "prefixed" | "plain" | ((server: string, tool: string) => string);

/** A tool of the merged catalog. */
export interface CatalogTool {
  /** What the model sees: `^[A-Za-z0-9_-]{1,64}$`, unique in the catalog, the same on every run. */
  readonly name: string;
  readonly server: string;
  /** What the server calls it. */
  readonly wireName: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly annotations: ToolAnnotations;
  readonly meta: Readonly<Record<string, unknown>>;
}

/** Content of one resource. */
export interface ResourceBlob {
  readonly server: string;
  readonly uri: string;
  readonly mimeType?: string;
  asString(): string;
  asBytes(): Uint8Array;
}

export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

export interface CatalogPrompt {
  readonly server: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: ReadonlyArray<{
    readonly name: string;
    readonly description?: string;
    readonly required: boolean;
  }>;
}

/** A family of resources, with an address that has places to fill (RFC 6570). */
export interface CatalogResourceTemplate {
  readonly server: string;
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

export interface CatalogResource {
  readonly server: string;
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** State of one configured server. */
export interface ServerInfo {
  readonly server: string;
  /** `idle` until first use; `down` carries the reason in `error`. */
  readonly health: "idle" | "connecting" | "up" | "down";
  readonly era?: Era;
  readonly revision?: string;
  /** Self-reported by the server: for display only. */
  readonly implementation?: { readonly name: string; readonly version: string };
  readonly instructions?: string;
  readonly error?: { readonly code: string; readonly message: string };
  /** Tools that were left out or are used with a reservation (a schema that cannot be checked), each with the reason; also lists of prompts or resources that failed, by their method. */
  readonly problems: ReadonlyArray<{ readonly tool: string; readonly reason: string }>;
}

export interface ClientOptions<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  servers: Record<string, ServerConfig>;
  /** Layers around every call, the outermost first. */
  interceptors?: ReadonlyArray<Interceptor<Runtime, Extra>>;
  events?: ClientEvents;
  /**
   * Answers servers' questions: a handler, or `"interrupt"` when every call brings a driver (the agent does). Left out, the
   * elicitation capability is not declared.
   */
  elicitation?: ElicitationHandler | "interrupt";
  /**
   * Answers servers that want a model. Left out, the capability is not declared.
   * @deprecated by the protocol; earliest removal 2027-07-28.
   */
  sampling?: SamplingHandler | ApprovedSampling;
  /**
   * Answers servers that ask where they may work. Left out, the capability is not declared.
   * @deprecated by the protocol; earliest removal 2027-07-28.
   */
  roots?: Roots;
  /** Default `"prefixed"`. */
  naming?: Naming;
  /** `return` (default): a tool's error is a result with `isError`; `throw`: it is an `ExecutionError`. */
  toolErrors?: "return" | "throw";
  /** Least severe level asked of servers while `events.onLog` or a call's `onLog` listens. Default `"info"`. */
  logLevel?: LoggingLevel;
  /** Bytes the answer of a call, a prompt or a resource may have; a larger one fails its own call. Default 8 MiB. */
  maxResultBytes?: number;
  /**
   * The file that records every tool as it was accepted. A tool that differs later is not listed and not called
   * (`tool_changed`) until it is accepted again. Left out, tools may change as they like.
   */
  pin?: string | PinOptions;
  /** Asked with the exact command before a child process is started that nobody accepted; `false` forbids it. */
  onFirstStart?: OnFirstStart;
  /** How this client introduces itself. Default: name `tenon`, this package's version. */
  info?: { name: string; version: string };
}

export interface Client<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  readonly elicitation: "callback" | "interrupt" | "none";
  /** The merged catalog: servers in configured order, tools by name. Opens connections as needed, all at once. */
  listTools(...servers: string[]): Promise<readonly CatalogTool[]>;
  listPrompts(...servers: string[]): Promise<readonly CatalogPrompt[]>;
  listResources(...servers: string[]): Promise<readonly CatalogResource[]>;
  listResourceTemplates(...servers: string[]): Promise<readonly CatalogResourceTemplate[]>;
  /** Calls a tool by its server and wire name, through the interceptors. */
  callTool(
    server: string,
    tool: string,
    args?: Record<string, unknown>,
    options?: CallOptions<Runtime>,
  ): Promise<ToolCallOutcome<Extra>>;
  /** Calls a tool by its model-side name. */
  dispatch(
    name: string,
    args?: Record<string, unknown>,
    options?: CallOptions<Runtime>,
  ): Promise<ToolCallOutcome<Extra>>;
  /** Reads the given resources, or all listed ones when `uris` is left out. */
  readResources(server: string, uris?: readonly string[], options?: ReadOptions): Promise<readonly ResourceBlob[]>;
  getPrompt(
    server: string,
    name: string,
    args?: Record<string, string>,
    options?: ReadOptions,
  ): Promise<readonly PromptMessage[]>;
  servers(): readonly ServerInfo[];
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
