import { setTimeout as sleep } from "node:timers/promises";
import { type InputRequest, ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import { ConfigError, isRecord, type Json, type JsonObject } from "@tenon/core";
import { inSpan, type OpenSpan, toJson } from "@tenon/core/internal";
import { LeaseLostError, type TaskEnd, type TaskRun, type TaskStore } from "@tenon/store";
import { readArguments } from "../definition/arguments.ts";
import { within } from "../definition/mount.ts";
import type { CompiledTool } from "../definition/registry.ts";
import { failedCall, toolResult } from "../definition/result.ts";
import { TimeLimit } from "../definition/time-limit.ts";
import { dispatch, readingFor, type Service } from "../dispatch/dispatch.ts";
import { errorData, ToolError } from "../errors.ts";
import type { Exchange } from "../handler/context.ts";
import { contextFor, describeFailure } from "../handler/handler.ts";
import { emptyJournal, type Journal, packJournal, type StepResult, unpackJournal } from "../handler/journal.ts";
import { type Ended, type Round, runLinear } from "../handler/linear.ts";
import { checkStepName } from "../handler/step-name.ts";
import { exchangeFor, type TaskCall, unpackCall } from "./call.ts";
import type { TaskDefaults } from "./options.ts";
import { createTaskProgress } from "./progress.ts";
import { type RunWatch, watchRun } from "./watch.ts";

/** Runs that may end without anything to show for it, by crashes, before a task is taken for what crashes its processes. */
const MAX_FRUITLESS = 5;
/** Rounds of questions of one task: far above what people bear, low enough to end a loop. */
const MAX_ROUNDS = 1_000;
/** Milliseconds before a task that failed is tried again; doubled each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Milliseconds before a task of an unknown tool is looked at again. */
const STRANGE_MS = 2_000;
/** Milliseconds between tries to keep how a task ended. */
const KEEP_AGAIN_MS = [200, 1_000] as const;

/** What all runs of a server share. */
export interface RunParts {
  readonly service: Service;
  readonly store: TaskStore;
  readonly defaults: TaskDefaults;
  /** Tools this process was asked to run and does not offer: each is worth one line of the log. */
  readonly strange: Set<string>;
}

/** A tool by its name for callers, and the server it lives on. */
function findTool(root: Service, fullName: string): { service: Service; tool: CompiledTool } | undefined {
  let service = root;
  let name = fullName;
  for (;;) {
    const tool = service.registry.tools.get(name);
    if (!tool?.mounted) return tool && { service, tool };
    service = within(service, tool.mounted);
    name = tool.mounted.name;
  }
}

/** What a run of the handler starts from: the journal of the last questions, with every step since the beginning. */
function roundOf(run: TaskRun, call: TaskCall): { journal: Journal; rounds: number } {
  const kept = isRecord(run.journal) ? run.journal : undefined;
  const journal = unpackJournal(kept) ?? call.journal ?? emptyJournal(run.task.id);
  for (const [key, result] of call.journal?.steps ?? []) journal.steps.set(key, result);
  for (const [key, result] of run.steps) journal.steps.set(key, result as StepResult); // as `record` below got it
  return { journal, rounds: typeof kept?.rounds === "number" ? kept.rounds : 0 };
}

/** One run of one task, from its taking to its end, its question, or its handing back. */
class Run {
  readonly #parts: RunParts;
  readonly #run: TaskRun;
  readonly #watch: RunWatch;
  readonly #what: string;
  #span: OpenSpan | undefined;
  #attempts: number;
  /** Whether this run has something to show for it. */
  #fruitful = false;

  constructor(parts: RunParts, run: TaskRun, closing: AbortSignal) {
    this.#parts = parts;
    this.#run = run;
    this.#what = `Tool ${run.task.tool}`;
    this.#attempts = parts.defaults.attempts;
    this.#watch = watchRun(run, parts.store, closing, parts.service.log);
  }

  async work(): Promise<void> {
    const { service: root } = this.#parts;
    const { task } = this.#run;
    try {
      if (this.#watch.stopped) return await this.#release(); // taken while this process began to stop
      const found = findTool(root, task.tool);
      this.#attempts = found?.tool.task?.attempts ?? this.#attempts;
      if (task.fruitless >= Math.max(MAX_FRUITLESS, this.#attempts)) return await this.#giveUp(this.#crashed());
      if (!found) return await this.#leaveToOthers();
      await this.#traced(() => this.#runTool(found.service, found.tool));
    } catch (error) {
      if (error instanceof LeaseLostError) return;
      root.log("error", "a run of a task ended early", { task: task.id, error });
      await this.#notKept(error);
    } finally {
      this.#watch.end();
    }
  }

  /**
   * A process that was started before the tool was written, or after it was taken away, must not count as a failure of the task:
   * hands it back for a moment, so that it is not taken again and again. It takes no place meanwhile: there may be many of them.
   */
  async #leaveToOthers(): Promise<void> {
    const { id, tool } = this.#run.task;
    const { service, strange } = this.#parts;
    if (!strange.has(tool)) {
      strange.add(tool);
      service.log("warning", "a task is of a tool that this process does not offer; left to others", {
        task: id,
        tool,
      });
    }
    await this.#release(STRANGE_MS);
  }

  /** In the trace of the call that made the task, though that may be over for days: what its runs do belongs to it. */
  #traced(run: () => Promise<void>): Promise<void> {
    const { task } = this.#run;
    return inSpan(
      () => ({
        name: `tasks/run ${task.tool}`,
        kind: "consumer",
        meta: { ...unpackCall(task.call).trace },
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": task.tool,
          "tenon.server": task.server,
          "tenon.task.id": task.id,
          "tenon.task.fence": this.#run.fence,
        },
      }),
      async (span) => {
        this.#span = span;
        await run();
      },
    );
  }

  async #runTool(service: Service, tool: CompiledTool): Promise<void> {
    const run = this.#run;
    const watch = this.#watch;
    const call = unpackCall(run.task.call);
    const exchange = exchangeFor(call, watch.signal, service.contract);
    const read = await readArguments(tool.input, call.args, readingFor(service, tool));
    if ("problem" in read) {
      // they were right when the task began: the definition is another one now
      return this.#finish({ status: "completed", result: this.#failed(`Invalid arguments: ${read.problem}`) });
    }
    let lifespan: unknown;
    try {
      lifespan = await service.lifespan();
    } catch (error) {
      return this.#again(this.#described(service, exchange, error), MAX_FRUITLESS);
    }
    const { journal, rounds } = roundOf(run, call);
    const progress = createTaskProgress(run, (error) => {
      if (error instanceof LeaseLostError) watch.failed(error);
      else service.log("warning", "how far a task is could not be kept", { task: run.task.id, error });
    });
    const limit = tool.timeoutMs === undefined ? undefined : new TimeLimit(this.#what, tool.timeoutMs, service.log);
    const about = {
      name: run.task.tool,
      task: { id: run.task.id },
      lifespan,
      progress: progress.report,
      signal: () => (limit ? limit.signal(watch.signal) : watch.signal),
      startTask: async () => undefined,
    };
    const ended = await Promise.race([
      runLinear(
        () => this.#round(journal),
        // the arguments were checked by the tool's schema; each handler declared its own lifespan type
        (linear) =>
          tool.run(read.args as never, contextFor(dispatch, service, exchange, about, linear, () => journal) as never),
        limit,
      ),
      watch.left,
    ]);
    await progress.end();
    if (watch.stopped === "gone") return;
    if (watch.stopped === "store") return this.#notKept(watch.refused);
    if (!ended) return this.#release();
    // what it throws when it is stopped is no failure of its own
    if (watch.stopped === "closing" && !("done" in ended) && !("questions" in ended)) return this.#release();
    await this.#settle(service, tool, exchange, ended, { journal, rounds });
  }

  #round(journal: Journal): Round {
    const run = this.#run;
    const watch = this.#watch;
    const answers = new Map<string, JsonObject>();
    for (const key of journal.asked.keys()) {
      const answer = run.answers.get(key) ?? journal.given.get(key);
      if (answer) answers.set(key, answer);
    }
    return {
      journal,
      answers,
      complete: answers.size === journal.asked.size,
      recorder: {
        begin: async () => undefined,
        async check(step) {
          checkStepName(step);
          await watch.check();
        },
        record: async (step, result) => {
          try {
            await run.record(step, result as unknown as readonly Json[]); // a step's result is a list of one or none
            this.#fruitful = true;
          } catch (error) {
            watch.failed(error);
            throw error;
          }
        },
      },
    };
  }

  /** What the end of the handler makes of the task. */
  async #settle(
    service: Service,
    tool: CompiledTool,
    exchange: Exchange,
    ended: Ended<unknown>,
    { journal, rounds }: { journal: Journal; rounds: number },
  ): Promise<void> {
    if ("questions" in ended) {
      if (rounds >= MAX_ROUNDS) {
        const message = `${this.#what} asked more than ${MAX_ROUNDS} times`;
        return this.#finish({ status: "failed", error: { code: ProtocolErrorCode.InternalError, message } });
      }
      return this.#ask(ended.questions, journal, rounds + 1);
    }
    if ("left" in ended) return this.#release(); // in a task, startTask does nothing
    if ("refused" in ended) return this.#failedBy(service, exchange, ended.refused);
    if ("unrecorded" in ended) return this.#release();
    if ("failed" in ended) return this.#failedBy(service, exchange, ended.failed);
    let result: Result;
    try {
      result = await toolResult(ended.done, tool, "modern", service.maxResultBytes);
    } catch (error) {
      return this.#failedBy(service, exchange, error);
    }
    // clients of the extension want the result as the call would have got it
    return this.#finish({ status: "completed", result: toJson({ resultType: "complete", ...result }) });
  }

  async #ask(questions: ReadonlyMap<string, InputRequest>, journal: Journal, rounds: number): Promise<void> {
    const asked = [...questions].map(([key, request]) => ({ key, request: toJson(request) }));
    // steps have rows of their own
    const { steps: _, ...packed } = packJournal({ ...journal, steps: new Map() });
    this.#span?.set({ "tenon.task.status": "input_required" });
    await this.#run.ask(asked, { ...packed, rounds });
  }

  #failed(text: string, data?: Json): Json {
    return toJson({ resultType: "complete", ...failedCall(text, data) });
  }

  /** What the caller reads of a failure; the line in the log says of which task it is. */
  #described(service: Service, exchange: Exchange, error: unknown): string {
    const { id } = this.#run.task;
    const log: Service["log"] = (level, message, details) => service.log(level, message, { task: id, ...details });
    return describeFailure({ log, exposeErrors: service.exposeErrors }, exchange, this.#what, error);
  }

  async #failedBy(service: Service, exchange: Exchange, error: unknown): Promise<void> {
    if (error instanceof ProtocolError) {
      const { code, message } = error;
      const data = errorData(service.log, this.#what, error.data);
      return this.#finish({
        status: "failed",
        statusMessage: message,
        error: { code, message, ...(data !== undefined && { data }) },
      });
    }
    const text = this.#described(service, exchange, error);
    if (error instanceof ToolError) {
      return this.#finish({
        status: "completed",
        result: this.#failed(text, errorData(service.log, this.#what, error.data)),
      });
    }
    if (this.#attempts > 1) return this.#again(text, this.#attempts);
    return this.#finish({ status: "completed", result: this.#failed(text) });
  }

  /**
   * What a run did or asked could not be kept. Another one would do it again, so that comes after a pause and counts; what no
   * store ever takes is given up at once.
   */
  async #notKept(error: unknown): Promise<void> {
    const text = `${this.#what}: what it did or asked could not be kept`;
    try {
      if (error instanceof ConfigError) await this.#giveUp(`${text}, and never can be; look at the log of the server`);
      else await this.#again(text, Math.max(MAX_FRUITLESS, this.#attempts));
    } catch (later) {
      // the lease lapses anyway, so a store that cannot be reached does no more than delay the next run
      if (later instanceof LeaseLostError) return;
      this.#parts.service.log("warning", "handing a task back failed", { task: this.#run.task.id, error: later });
    }
  }

  /** Lets it be tried again after a growing pause, unless it was tried often enough. */
  async #again(text: string, attempts: number): Promise<void> {
    const spent = this.#fruitful ? 0 : this.#run.task.fruitless + 1;
    if (spent >= attempts) return this.#giveUp(text);
    const whole = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, spent - 1));
    const pauseMs = Math.round(whole * (0.5 + Math.random() / 2)); // not all at once, when they failed together
    this.#span?.fail("tried_again");
    await this.#run.again(pauseMs, `${text}; attempt ${spent + 1} of ${attempts} in ${(pauseMs / 1_000).toFixed(1)} s`);
  }

  #crashed(): string {
    const { tool, fruitless } = this.#run.task;
    return `Tool ${tool} was given up: ${fruitless} runs ended without a finished step; look at the log of the processes that ran it`;
  }

  async #giveUp(message: string): Promise<void> {
    const { id, tool } = this.#run.task;
    this.#parts.service.log("error", "a task was given up", { task: id, tool, reason: message });
    const error = { code: ProtocolErrorCode.InternalError, message };
    await this.#finish({ status: "failed", statusMessage: message, error, dead: true });
  }

  /** Keeps the end; a store that hiccups does not make a whole run go to waste. */
  async #finish(end: TaskEnd): Promise<void> {
    this.#span?.set({ "tenon.task.status": end.status });
    if (end.status === "failed") this.#span?.fail("task_failed");
    else if (isRecord(end.result) && end.result.isError === true) this.#span?.fail("tool_error");
    for (const pauseMs of [...KEEP_AGAIN_MS, undefined]) {
      try {
        return await this.#run.finish(end);
      } catch (error) {
        if (pauseMs === undefined || error instanceof LeaseLostError || error instanceof ConfigError) throw error;
        await sleep(pauseMs);
      }
    }
  }

  async #release(delayMs = 0): Promise<void> {
    // the lease lapses anyway, so a store that cannot be reached does no more than delay the next run
    await this.#run.release(delayMs).catch((error: unknown) => {
      this.#parts.service.log("warning", "handing a task back failed", { task: this.#run.task.id, error });
    });
  }
}

/**
 * Runs a task until its handler ends, asks or is stopped. Never throws.
 * @param closing fires when this process stops: the task goes on elsewhere
 */
export async function runTask(parts: RunParts, run: TaskRun, closing: AbortSignal): Promise<void> {
  await new Run(parts, run, closing).work();
}
