import type { CallToolResult, ContentBlock, InputRequiredResult } from "@modelcontextprotocol/client";
import type { CatalogTool } from "./catalog.ts";
import type { ClientEvents } from "./events.ts";
import type { ElicitationAnswer, ElicitationRequest } from "./questions.ts";
import type { FollowOptions, TaskHandle } from "./tasks.ts";

/** What one call carries from the program around it: who asks, in which thread, with which state. */
export interface ToolRuntime<Context = unknown, State = unknown> {
  /** The run's context, such as who asks. */
  readonly context?: Context;
  /** The state of the graph. */
  readonly state?: State;
  /** LangGraph's long-term store, where an agent makes the call. */
  readonly store?: unknown;
  /** The model's id of the call. */
  readonly toolCallId?: string;
  /** The conversation. */
  readonly threadId?: string;
  /** What a person decided about the call before it was made, where one was asked and an agent makes it. */
  readonly approval?: {
    /** `approve`, `edit` or `respond`; what was rejected is not called. */
    readonly decision: string;
    /** Who decided, as the application names people. */
    readonly decidedBy?: unknown;
    /** ISO 8601. */
    readonly askedAt?: string;
    /** ISO 8601. */
    readonly decidedAt?: string;
  };
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
  /** Configured name of the server. */
  readonly server: string;
  /** The tool's name on the wire. */
  readonly name: string;
  /** Names the call in events, logs and audit entries; the same however often it is sent. */
  readonly callId: string;
  /** The arguments as they will be sent. */
  readonly args: Readonly<Record<string, unknown>>;
  /** HTTP headers of this call, besides the server's own. */
  readonly headers: Readonly<Record<string, string>>;
  /** What is sent as `_meta`, besides the protocol's own keys. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** Set when a task that was begun before is followed (`client.tasks.resume`): its id. Nothing is started, so arguments are none. */
  readonly task?: string;
  /** What the caller gave as `runtime`. */
  readonly runtime: Runtime;
  /** Fires when the call is cancelled or its time is over. */
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
  /** All blocks. */
  readonly content: readonly ContentBlock[];
  /** What a program reads: `structuredContent`. */
  readonly structured?: unknown;
  /** Whether the tool, or this client, says that it failed. */
  readonly isError: boolean;
  /** The answer's `_meta`. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** The answer as it came over the wire. */
  readonly raw: CallToolResult;
  /** Why this client made an error of it: `invalid_arguments` (nothing was sent) or `invalid_output`. */
  readonly problem?: { readonly code: string; readonly data?: unknown };
  /** Set, with no content, where the call goes on as a task that nobody follows yet (`client.tasks.start`). */
  readonly task?: TaskHandle;
}

/** What leaves the onion: a tool's result, or what an interceptor made of it (`Extra`, for example a LangGraph Command). */
export type ToolCallOutcome<Extra = never> = ToolResult | Extra;

/** The server made a task of a call; it goes on there (tasks extension, SEP-2663). As it came. */
export interface TaskCreated {
  readonly resultType: "task";
  readonly taskId: string;
  readonly [key: string]: unknown;
}

/** Answer of one leg on the wire: the final result, questions with an opaque state, or a task to follow. Plain JSON. */
export type WireResult = CallToolResult | InputRequiredResult | TaskCreated;

/** One leg: the first sending of a call, a retry that carries answers, or the following of its task until that asks or ends. */
export interface Leg {
  readonly server: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** 0 for the first sending, then one more per leg. */
  readonly round: number;
  /** Set for a leg that follows a task: its id. */
  readonly task?: string;
}

/**
 * Carries out the legs of one call when it must survive more than this process: the agent memoises each leg in a checkpoint
 * and turns questions into interrupts. Without a driver, `callTool` sends each leg itself and asks the `elicitation` handler.
 */
export interface CallDriver {
  /** Returns what `send` returns, or what it returned for this leg before. */
  leg(send: () => Promise<WireResult>, leg: Leg): Promise<WireResult>;
  /**
   * Answers all questions of one round, by key; those of a task (`leg.task`) all or some. May throw to suspend the call. Left
   * out: the client's handler is asked, inside a leg.
   */
  answer?(
    questions: Readonly<Record<string, ElicitationRequest>>,
    leg: Leg,
  ): Promise<Readonly<Record<string, ElicitationAnswer>>>;
  /**
   * A server of the older revision asks inside the running leg. Returns the answer where it is known already; with undefined
   * the leg is ended unanswered, and `send` rejects with `question_pushed`. Left out: such a question is `legacy_question`.
   */
  pushed?(question: ElicitationRequest): ElicitationAnswer | undefined;
  /** Whether a call that was aborted for this reason leaves its task running, since somebody else goes on with it. Default: it is cancelled. */
  leavesTask?(reason: unknown): boolean;
}

/** What goes with one call. */
export interface CallOptions<Runtime extends ToolRuntime = ToolRuntime> {
  /** Cancels the call; the server is told. */
  signal?: AbortSignal;
  /** Milliseconds without an answer or progress until the call fails. Default 60,000. */
  timeoutMs?: number;
  /** Milliseconds after which a leg fails even while progress arrives. Default 600,000. Time spent on questions does not count. */
  totalTimeoutMs?: number;
  /** HTTP headers of this call only, besides the server's own. */
  headers?: Record<string, string>;
  /** Sent as `_meta`, besides the protocol's own keys. */
  meta?: Record<string, unknown>;
  /**
   * Names the call in events, logs and audit entries, 1 to 200 characters. Give a call that is carried on by another process the
   * id it had, so that its audit entries are found together; the agent does. Default: an id no other call has.
   */
  callId?: string;
  /** Who asks, in which thread, with which state. Interceptors see it as `request.runtime`, `contract.context` gets it, and the thread finds the replica. */
  runtime?: Runtime;
  /** Progress of this call only, besides `events.onProgress`. */
  onProgress?: ClientEvents["onProgress"];
  /** Log messages of this call only, besides `events.onLog`. */
  onLog?: ClientEvents["onLog"];
  /** Bytes its answer may have. Default: the client's `maxResultBytes`. What one message may have, the server's `maxResponseBytes` says. */
  maxResultBytes?: number;
  /** How a task that a server makes of the call is followed; `timeoutMs` and `totalTimeoutMs` then bound each single request. */
  task?: FollowOptions;
  /** Carries the call over restarts; needed with `elicitation: "interrupt"`. The agent brings one. */
  driver?: CallDriver;
}

/** Options of one reading of a resource or one rendering of a prompt. */
export type ReadOptions<Runtime extends ToolRuntime = ToolRuntime> = Omit<
  CallOptions<Runtime>,
  "driver" | "callId" | "task"
>;
