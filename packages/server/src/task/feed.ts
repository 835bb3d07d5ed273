import { createHash } from "node:crypto";
import { isRecord, type JsonObject } from "@tenon/core";
import type { TaskStore } from "@tenon/store";
import type { Caller } from "../handler/context.ts";
import type { ServerLog } from "../log.ts";
import { findOwn } from "./methods.ts";
import { detailedTask } from "./wire.ts";

/** Least milliseconds between two messages about one task. */
const THIN_MS = 250;
/** Milliseconds until a task is looked at without word of a change, which may have been lost on its way. */
const LOOK_MS = 5_000;

const ENDED: ReadonlySet<unknown> = new Set(["completed", "failed", "cancelled"]);

/** News of some tasks of one caller. */
export interface TaskFeed {
  /** Those it tells of: of the others that were asked for, not even that they exist is said. */
  readonly ids: readonly string[];
  /**
   * Sends each task as it is now, and then whenever that changes.
   * @param send the parameters of `notifications/tasks`; false where they could not go out now: the task is looked at again
   * @returns ends it
   */
  start(send: (task: JsonObject) => boolean): () => void;
}

/** The ids a `subscriptions/listen` request names; undefined when it asks for no tasks. */
export function taskIdsOf(body: unknown): readonly string[] | undefined {
  const params = isRecord(body) && isRecord(body.params) ? body.params : {};
  const ids: unknown = isRecord(params.notifications) ? params.notifications.taskIds : undefined;
  return Array.isArray(ids) ? [...new Set(ids.filter((id: unknown) => typeof id === "string"))] : undefined;
}

/** Follows one task. @returns ends it */
function follow(
  parts: { store: TaskStore; log: ServerLog },
  id: string,
  find: () => Promise<JsonObject | undefined>,
  send: (task: JsonObject) => boolean,
): () => void {
  let over = false;
  let sent = "";
  let looking = false;
  let dirty = false;
  let lastAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  const end = (): void => {
    over = true;
    clearTimeout(timer);
    unfollow();
  };
  async function look(): Promise<void> {
    looking = true;
    dirty = false;
    try {
      const task = await find();
      if (over) return;
      if (!task) return end(); // its time is over
      // the whole of it may be large, and there may be many listeners
      const print = createHash("sha256").update(JSON.stringify(task)).digest("base64url");
      if (print !== sent) {
        lastAt = performance.now();
        if (send(task)) sent = print;
      }
      if (print === sent && ENDED.has(task.status)) return end(); // nothing of it changes any more
    } catch (error) {
      parts.log("warning", "looking at a task for its listener failed", { task: id, error });
    } finally {
      looking = false;
    }
    wait(dirty ? THIN_MS : LOOK_MS);
  }
  function wait(ms: number): void {
    if (over) return;
    clearTimeout(timer);
    timer = setTimeout(() => void look(), ms);
    timer.unref();
  }
  const changed = (): void => {
    if (dirty) return; // it is about to be looked at
    dirty = true;
    if (!looking) wait(Math.max(0, lastAt + THIN_MS - performance.now()));
  };
  const unfollow = parts.store.onChange(id, changed);
  void look();
  return end;
}

/**
 * News of those of the named tasks that exist and belong to the caller.
 * @param asked few: a request that names many was refused before
 */
export async function openFeed(
  parts: { store: TaskStore; server: string; log: ServerLog },
  asked: readonly string[],
  caller: Caller | undefined,
): Promise<TaskFeed> {
  const { store, server } = parts;
  const find = async (id: string): Promise<JsonObject | undefined> => {
    const record = await findOwn(store, server, id, caller);
    return record && detailedTask(record);
  };
  const found = await Promise.all(asked.map(async (id) => ((await findOwn(store, server, id, caller)) ? [id] : [])));
  const ids = found.flat();
  return {
    ids,
    start(send) {
      const ends = ids.map((id) => follow(parts, id, () => find(id), send));
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
