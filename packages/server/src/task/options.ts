import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, type OptionCheck, type OptionChecks, oneOf, refuseOption } from "@tenon/core/internal";

/**
 * Whether calls of a tool become tasks: `"optional"` for clients that declare the tasks extension, `"required"` for every call, so
 * that other clients are refused, `"never"`.
 */
export type TaskUse = "optional" | "required" | "never";

/** How calls of one tool are run as tasks. */
export interface ToolTaskOptions {
  /** Which calls become tasks. */
  use: TaskUse;
  /**
   * When a call becomes a task: `"call"`, at once; `"handler"`, when the handler awaits `ctx.startTask()`, so that what it asks
   * before is asked in the call itself. Default `"call"`.
   */
  start?: "call" | "handler";
  /** Milliseconds a task is kept, from its creation; null: for ever. Default: the server's `tasks.ttlMs`. */
  ttlMs?: number | null;
  /** Milliseconds a client should wait between two looks. Default: the server's `tasks.pollIntervalMs`. */
  pollIntervalMs?: number;
  /** Runs until a task whose handler fails unexpectedly is given up. Default: the server's `tasks.attempts`. */
  attempts?: number;
}

/** How tasks of a server are run and kept. */
export interface TasksOptions {
  /** Tasks this process runs at once; 0: other processes run them (`server.work()`, `tenon worker`). Default 4. */
  concurrency?: number;
  /** Milliseconds a task is kept, from its creation; null: for ever. Default 7 days. */
  ttlMs?: number | null;
  /** Milliseconds a client should wait between two looks. Default 1,000. */
  pollIntervalMs?: number;
  /**
   * Runs until a task whose handler fails unexpectedly is given up. With 1 such a failure is the task's result, as it would be the
   * call's; with more it is tried again after a growing pause. Default 1.
   */
  attempts?: number;
}

/** How tasks of one tool are run, as far as its definition says. */
export interface CompiledTask extends Omit<ToolTaskOptions, "use" | "start"> {
  readonly use: "optional" | "required";
  readonly start: "call" | "handler";
}

/** What is said of every task of a server, where its tool says nothing. */
export type TaskDefaults = Required<Omit<TasksOptions, "concurrency">>;

const WEEK_MS = 7 * 24 * 60 * 60 * 1_000;

export const TASK_DEFAULTS: TaskDefaults = { ttlMs: WEEK_MS, pollIntervalMs: 1_000, attempts: 1 };

/** Tasks one process runs at once unless it is told otherwise. */
export const TASK_CONCURRENCY = 4;

/** For an option that counts. */
const count =
  (least: number, unit: string): OptionCheck =>
  (value, where) => {
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return;
    refuseOption(`${where} must be a whole number of ${unit}, ${least} or more, got ${String(value)}`);
  };

const time = count(1, "milliseconds");
const timeOrNull: OptionCheck = (value, where) => {
  if (value !== null) time(value, where);
};

const SHARED = { ttlMs: timeOrNull, pollIntervalMs: time, attempts: count(1, "runs") };
const TOOL: OptionChecks<ToolTaskOptions> = {
  ...SHARED,
  use: oneOf("optional", "required", "never"),
  start: oneOf("call", "handler"),
};

/** The table for `createServer({ tasks })`. */
export const TASKS_OPTIONS: OptionChecks<TasksOptions> = { ...SHARED, concurrency: count(0, "tasks") };

/** @throws ConfigError for a concurrency that runs nothing */
export function checkWorkOptions(options: object): void {
  checkOptions(options, { concurrency: count(1, "tasks") }, "work(options)");
}

/**
 * Reads what a tool says about tasks.
 * @returns undefined where its calls are never one
 * @throws ConfigError `unknown_option` or `invalid_option` naming the tool
 */
export function compileTask(where: string, given: TaskUse | ToolTaskOptions | undefined): CompiledTask | undefined {
  if (given === undefined) return undefined;
  const options = typeof given === "string" ? { use: given } : given;
  if (!isRecord(options)) {
    throw new ConfigError(`${where}: task must be "optional", "required", "never" or { use: … }`, {
      code: "invalid_option",
    });
  }
  checkOptions(options, TOOL as Readonly<Record<string, OptionCheck>>, `${where}: task`); // a table of those names
  TOOL.use(options.use, `${where}: task.use`); // what is left out is not asked about above
  const { use, start = "call", ...rest } = options;
  return use === "never" ? undefined : { use, start, ...rest };
}
