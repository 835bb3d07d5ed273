import type { MessagePort } from "node:worker_threads";
import { toJson } from "@tenon/core/internal";
import { isContent } from "./definition/content.ts";
import { ToolError } from "./errors.ts";
import type { ToolContext } from "./handler/context.ts";
import { type LogLevel, perLevel } from "./log.ts";

/** What of a handler's context is copied into a thread as it is. */
const COPIED = ["caller", "era", "requestId", "sessionId", "context", "meta", "idempotencyKey", "task"] as const;
type Copied = Pick<ToolContext, (typeof COPIED)[number]>;

/** The part of a context that a thread gets. */
export function copiedFrom(ctx: ToolContext): Copied {
  return Object.fromEntries(COPIED.map((name) => [name, ctx[name]])) as unknown as Copied; // each of them
}

/** What a function in a worker thread gets besides its arguments: what can be copied into a thread, and what can be sent back. */
export type WorkerContext = Copied & Pick<ToolContext, "progress" | "log" | "signal">;

/**
 * The default export of a worker module. It may block: nothing else waits for it. It gets no `elicit`, `step` or `lifespan`;
 * a tool that needs both keeps a handler of its own.
 */
export type WorkerFunction<Args = never> = (args: Args, ctx: WorkerContext) => unknown;

/** One call handed to a thread. */
export interface WorkerTask {
  readonly module: string;
  /** How errors call the function. */
  readonly name: string;
  readonly args: unknown;
  readonly port: MessagePort;
  readonly about: Copied;
}

type LogOptions = Parameters<WorkerContext["log"]["info"]>[1];

/** What a thread tells while its function runs; `end` says that nothing follows. */
export type FromWorker =
  | { kind: "progress"; progress: Parameters<WorkerContext["progress"]> }
  | { kind: "log"; level: LogLevel; data: unknown; options: LogOptions }
  | { kind: "end" };

/** How the function ended. */
export type WorkerAnswer =
  | { kind: "value"; value: unknown }
  | { kind: "content"; blocks: readonly unknown[]; structured?: unknown }
  | { kind: "tool_error"; message: string; code: string; data: unknown }
  | { kind: "error"; name: string; message: string; stack?: string | undefined };

function failure(error: unknown): WorkerAnswer {
  if (error instanceof ToolError) {
    return { kind: "tool_error", message: error.message, code: error.code, data: error.data };
  }
  return error instanceof Error
    ? { kind: "error", name: error.name, message: error.message, stack: error.stack }
    : { kind: "error", name: "Error", message: String(error) };
}

function contextOf({ port, about }: WorkerTask): WorkerContext {
  const cancelled = new AbortController();
  port.on("message", () => cancelled.abort()); // the only message that comes this way
  port.unref();
  const tell = async (message: FromWorker): Promise<void> => port.postMessage(message);
  const level =
    (name: LogLevel): WorkerContext["log"]["info"] =>
    (data, options) =>
      tell({ kind: "log", level: name, data, options });
  return {
    ...about,
    signal: cancelled.signal,
    progress: (...progress) => tell({ kind: "progress", progress }),
    log: perLevel(level),
  };
}

/** Runs one call inside a thread: loads the module (once per thread) and calls its default export. */
export default async function work(task: WorkerTask): Promise<WorkerAnswer> {
  try {
    const { default: run } = (await import(task.module)) as { default?: unknown }; // a module's namespace
    if (typeof run !== "function") throw new TypeError(`${task.module} has no function as its default export`);
    const value: unknown = await run(task.args, contextOf(task));
    return isContent(value)
      ? { kind: "content", blocks: value.blocks, structured: value.structured }
      : // JSON here already: not everything can be copied between threads, and the error names the path
        { kind: "value", value: value === undefined ? undefined : toJson(value, `result of ${task.name}`) };
  } catch (error) {
    return failure(error);
  } finally {
    task.port.postMessage({ kind: "end" } satisfies FromWorker);
  }
}
