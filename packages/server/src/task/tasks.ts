import { ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import { ConfigError } from "@tenon/core";
import type { TaskStatus, TaskStore } from "@tenon/store";
import type { Service } from "../dispatch/dispatch.ts";
import { refusedByStore } from "../errors.ts";
import type { Caller } from "../handler/context.ts";
import { describeFailure } from "../handler/handler.ts";
import { requestLog } from "../log.ts";
import { type Beginning, createTask } from "./creation.ts";
import { openFeed, type TaskFeed } from "./feed.ts";
import { taskExtension } from "./methods.ts";
import { checkWorkOptions, TASK_CONCURRENCY, TASK_DEFAULTS, type TasksOptions } from "./options.ts";
import type { Runner } from "./runner.ts";

/** What a server does about tasks, as its other parts ask for it. */
export interface Tasks {
  /** Makes a call a task. @throws ProtocolError */
  create(beginning: Beginning): Promise<Result>;
  /** Whether this server has tools with tasks, and so the extension. */
  offered(): boolean;
  /** How many there are of each status; undefined where there are no tools with tasks. */
  count(): Promise<Readonly<Record<TaskStatus, number>>> | undefined;
  /** News of those of the named tasks that belong to the caller. */
  feed(ids: readonly string[], caller: Caller | undefined): Promise<TaskFeed>;
}

/** Running tasks without serving anything. */
export interface Working {
  /** Takes no more tasks, stops what runs and hands it back, within two seconds: other processes continue it. */
  close(): Promise<void>;
  /** Resolves when it was closed. */
  readonly done: Promise<void>;
}

/** The side of tasks that the server itself drives. */
export interface TaskSide extends Tasks {
  /** Offers the extension as soon as there is a tool with tasks. */
  watchTools(): void;
  /** The process serves from here on: it runs tasks as soon as there are tools with them. */
  serve(): void;
  work(options: { concurrency?: number }): Promise<Working>;
  close(): Promise<void>;
}

/** @param service of the server; asked when something happens, since it holds this side */
export function createTasks(service: () => Service, store: TaskStore, options: TasksOptions = {}): TaskSide {
  const { concurrency = TASK_CONCURRENCY, ...given } = options;
  const defaults = { ...TASK_DEFAULTS, ...given };
  const runners = new Set<Runner>();
  let offered = false;
  let serving = false;
  let started = false;
  let closed = false;

  async function start(places: number, holds: boolean): Promise<Runner> {
    const { startRunner } = await import("./runner.ts"); // a server without such tools never loads it
    if (closed) return { close: async () => undefined, done: Promise.resolve() }; // meanwhile
    const runner = startRunner(
      { service: service(), store, defaults, strange: new Set() },
      { concurrency: places, holds },
    );
    runners.add(runner);
    void runner.done.then(() => runners.delete(runner));
    return runner;
  }
  function startServing(): void {
    if (!serving || !offered || started || closed) return;
    if (concurrency === 0) {
      // a worker of another process would not see them
      if (!store.shared && runners.size === 0) {
        service().log(
          "warning",
          "tasks wait: concurrency is 0, and the store is this process's memory, where no worker looks",
        );
      }
      return;
    }
    started = true;
    start(concurrency, false).catch((error: unknown) => service().log("error", "tasks are not run", { error }));
  }

  return {
    async create(beginning) {
      const { serverName: server } = service();
      try {
        return await createTask(store, { server, defaults }, beginning);
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        // not the tool's failure but ours: the store cannot be reached, or is full
        if ((beginning.journal?.steps.size ?? 0) === 0) {
          const refused = refusedByStore(
            requestLog(service().log, beginning.exchange),
            `Tool ${beginning.tool}`,
            error,
          );
          if (refused !== error) throw refused;
        }
        const text = describeFailure(service(), beginning.exchange, `Tool ${beginning.tool}`, error);
        throw new ProtocolError(ProtocolErrorCode.InternalError, text);
      }
    },
    offered: () => offered,
    count: () => (offered ? store.count(service().serverName) : undefined),
    feed: (ids, caller) => openFeed({ store, server: service().serverName, log: service().log }, ids, caller),
    watchTools() {
      const { registry, extensions, serverName } = service();
      const look = (): void => {
        if (offered || ![...registry.tools.values()].some(({ task }) => task)) return;
        offered = true;
        extensions.add(taskExtension(store, serverName, registry));
        startServing();
      };
      registry.onChange(({ kind, what }) => {
        if (kind === "tool" && what !== "removed") look();
      });
    },
    serve() {
      serving = true;
      startServing();
    },
    async work(workOptions) {
      checkWorkOptions(workOptions);
      if (!offered) {
        throw new ConfigError('work(): no tool of this server has tasks; give one `task: "optional"`', {
          code: "no_tasks",
        });
      }
      if (!store.shared) {
        service().log(
          "warning",
          "work(): the store is this process's memory, so tasks of other processes are not seen",
        );
      }
      await service().lifespan();
      const runner = await start(workOptions.concurrency ?? (concurrency || TASK_CONCURRENCY), true);
      return { close: () => runner.close(), done: runner.done };
    },
    async close() {
      closed = true;
      await Promise.all([...runners].map((runner) => runner.close()));
    },
  };
}
