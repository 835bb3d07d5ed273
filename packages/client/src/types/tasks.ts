import type { SerializedError } from "@tenon/core";
import type { CallOptions, ToolCallOutcome, ToolResult, ToolRuntime } from "./calls.ts";
import type { ProgressEvent } from "./events.ts";
import type { ElicitationAnswer, ElicitationRequest } from "./questions.ts";

/** Where a task stands (tasks extension, SEP-2663). The last three are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** How a task is followed to its end. */
export interface FollowOptions {
  /**
   * Milliseconds the following may take altogether; time spent on questions to a person does not count. Then it fails with `timeout`, and
   * the task goes on without being followed. Default 86,400,000: a day.
   */
  totalMs?: number;
  /**
   * Milliseconds the server may be out of reach (refused, cut off, silent, HTTP 5xx) before the following fails; until then it
   * is asked again and again. Default 600,000.
   */
  outageMs?: number;
  /** How often a task may ask something new. Default 10. */
  maxRounds?: number;
}

/** A task as its server last told of it. Plain JSON: it can be stored, and followed later by its id. */
export interface TaskHandle {
  /** The server's name for it: with the name of the server all that is needed to find it again. */
  readonly id: string;
  /** Configured name of the server. */
  readonly server: string;
  /** Wire name of the tool that was called, where that is known: the protocol does not tell it. */
  readonly tool?: string;
  readonly status: TaskStatus;
  /** What it is doing, in the server's words. */
  readonly statusMessage?: string;
  /** How far it is, where its server says so. */
  readonly progress?: ProgressEvent;
  /** Open questions to a person by their key, while `input_required`. */
  readonly questions?: Readonly<Record<string, ElicitationRequest>>;
  /** What the tool answered, once `completed`; it may say that the tool failed (`isError`). */
  readonly result?: ToolResult;
  /** Why it is `failed` or `cancelled`. */
  readonly error?: SerializedError;
  /** When it began, and when it last changed; ISO 8601, by the server's clock. */
  readonly createdAt?: string;
  readonly updatedAt?: string;
  /** Milliseconds the server keeps it, from its beginning; null: without limit. */
  readonly ttlMs?: number | null;
  /** Milliseconds the server wants between two looks. */
  readonly pollIntervalMs?: number;
}

/** A call that was answered without becoming a task, or that an interceptor answered. */
export interface AnsweredCall<Extra = never> {
  readonly id: undefined;
  readonly server: string;
  readonly tool: string;
  readonly status: "completed";
  readonly result: ToolCallOutcome<Extra>;
}

/** What `client.tasks.start` gives. */
export type StartedTask<Extra = never> = TaskHandle | AnsweredCall<Extra>;

/** Options of the starting of a task: those of a call; questions before the task begins are answered as in any call. */
export type StartOptions<Runtime extends ToolRuntime = ToolRuntime> = Omit<CallOptions<Runtime>, "task" | "driver">;

/** Options of the following of a task that was begun before. */
export interface ResumeOptions<Runtime extends ToolRuntime = ToolRuntime> extends CallOptions<Runtime> {
  /** Wire name of the tool that was called: its result is checked against the tool's `outputSchema`, and events name it. */
  tool?: string;
}

/** Options of one look at a task, one answer to it, or one request to cancel it. */
export interface TaskRequestOptions
  extends Pick<CallOptions, "signal" | "timeoutMs" | "totalTimeoutMs" | "headers" | "meta" | "maxResultBytes"> {
  /** Wire name of the tool that was called, for the handle and for errors. */
  tool?: string;
}

/**
 * Long work for programs that keep its id (tasks extension `io.modelcontextprotocol/tasks`, SEP-2663; revision 2026-07-28). Who just wants the
 * result uses `callTool`, which follows a task by itself. All methods throw ProtocolError `no_tasks` for a server without the
 * extension; those that take an id throw ProtocolError `task_gone` for a task that the server does not know, or no more, or
 * that belongs to somebody else.
 */
export interface ClientTasks<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  /**
   * Calls a tool, through the interceptors, and returns as soon as the server has made a task of it. Interceptors see a result
   * with `task`. A tool that answers at once gives its result, with `id: undefined`.
   * @throws TenonError as `callTool`
   */
  start(
    server: string,
    tool: string,
    args?: Record<string, unknown>,
    options?: StartOptions<Runtime>,
  ): Promise<StartedTask<Extra>>;
  /** Looks at a task once. Without interceptors: `headers` say who asks. @throws TenonError */
  get(server: string, id: string, options?: TaskRequestOptions): Promise<TaskHandle>;
  /**
   * Answers open questions of a task, all or some of them, by their key. Answers to what is not open any more are left out.
   * @returns the keys that were answered
   * @throws ProtocolError `invalid_answer` for one that does not fit its question; then nothing was sent
   */
  answer(
    server: string,
    id: string,
    answers: Readonly<Record<string, ElicitationAnswer>>,
    options?: TaskRequestOptions,
  ): Promise<readonly string[]>;
  /** Asks the server to end a task. It may end otherwise all the same; `get` tells. @throws TenonError */
  cancel(server: string, id: string, options?: TaskRequestOptions): Promise<void>;
  /**
   * Follows a task to its end and gives its result, through the interceptors, as `callTool` would have: with progress, questions
   * and errors. Any process may do so at any time, by the id alone. Interceptors see a request with `task`, no arguments, and
   * the name given as `tool` or none.
   * @throws TenonError as `callTool`
   */
  resume(server: string, id: string, options?: ResumeOptions<Runtime>): Promise<ToolCallOutcome<Extra>>;
}
