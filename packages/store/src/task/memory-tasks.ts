import { type Json, TenonError } from "@tenon/core";
import type { Signal, Signals } from "../event/signals.ts";
import { endOf, nextFence } from "../lease/leases.ts";
import { createMemoryClock } from "../lease/memory-clock.ts";
import {
  type Asked,
  allAnswered,
  changeTopic,
  checkName,
  checkTask,
  dueTopic,
  fruitlessAfter,
  hasEnded,
  lostRun,
  openQuestions,
  otherCall,
  pack,
  requestsOf,
  SWEEP_EVERY_MS,
  TIME_OVER,
  takeAnswers,
  unpack,
  unpackObject,
} from "./rules.ts";
import type { TaskRecord, TaskRun, TaskStatus, TaskStore } from "./tasks.ts";
import { createWakes } from "./wakes.ts";

/** How many tasks are kept in memory. */
export interface MemoryTaskLimits {
  readonly maxTasks: number;
  readonly maxBytes: number;
  readonly leaseMs: number;
}

/** Every place is taken by a task that has not ended: nothing was kept, and there is room again when some have. */
export class TasksFullError extends TenonError {
  constructor(limits: MemoryTaskLimits) {
    super(
      `No room for another task: ${limits.maxTasks} tasks or ${limits.maxBytes} bytes of them have not ended yet, and those are ` +
        "never dropped. Try again later, raise maxTasks or maxBytes of openMemory, or keep tasks in a database",
      { code: "tasks_full", retryable: true, maybeExecuted: false },
    );
  }
}

interface Entry {
  readonly id: string;
  readonly server: string;
  readonly tool: string;
  readonly owner: string;
  readonly callKey: { readonly key: string; readonly digest: string } | undefined;
  readonly call: string;
  readonly ttlMs: number | null;
  readonly pollIntervalMs: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  status: TaskStatus;
  statusMessage: string | undefined;
  progress: string | undefined;
  updatedAt: number;
  asked: Asked | undefined;
  /** What its questions and the answers to them weigh. */
  askedBytes: number;
  usedKeys: readonly string[];
  journal: string | undefined;
  result: string | undefined;
  error: string | undefined;
  fruitless: number;
  dead: boolean;
  dueAt: number;
  steps: Map<string, { readonly text: string; readonly fence: number }>;
  bytes: number;
  /** The run that has begun and not ended. */
  runFence: number | undefined;
  /** Of the last run, so that the next one's is higher. */
  fence: number;
  held: boolean;
  leaseUntil: number;
}

const isRunning = (entry: Entry, now: number): boolean => entry.held && entry.leaseUntil > now;
const gone = (entry: Entry, now: number): boolean => hasEnded(entry.status) && entry.expiresAt <= now;

function recordOf(entry: Entry): TaskRecord {
  return {
    id: entry.id,
    server: entry.server,
    tool: entry.tool,
    owner: entry.owner,
    call: unpackObject(entry.call),
    ttlMs: entry.ttlMs,
    pollIntervalMs: entry.pollIntervalMs,
    status: entry.status,
    ...(entry.statusMessage !== undefined && { statusMessage: entry.statusMessage }),
    ...(entry.progress !== undefined && { progress: unpackObject(entry.progress) }),
    createdAt: entry.createdAt,
    updatedAt: entry.updatedAt,
    requests: structuredClone(requestsOf(entry.status, entry.asked)),
    ...(entry.result !== undefined && { result: unpack(entry.result) }),
    ...(entry.error !== undefined && { error: unpackObject(entry.error) }),
    fruitless: entry.fruitless,
    dead: entry.dead,
  };
}

/**
 * Tasks in the memory of this process: they end with it. Bounded: those whose time is over go first, then those that have ended,
 * oldest first; a task that has not ended is never dropped.
 */
export function createMemoryTasks(limits: MemoryTaskLimits, signals: Signals): TaskStore {
  const { leaseMs } = limits;
  const entries = new Map<string, Entry>();
  const byCallKey = new Map<string, Entry>();
  let bytes = 0;
  const clock = createMemoryClock();
  let swept = clock();
  const wakes = createWakes(signals);

  const tellChange = ({ id }: Entry): Signal => ({ topic: changeTopic(id), message: id });
  const tellDue = ({ id, server }: Entry): Signal => ({ topic: dueTopic(server), message: id });

  function weigh(entry: Entry, more: number): void {
    entry.bytes += more;
    bytes += more;
  }

  function drop(entry: Entry): void {
    bytes -= entry.bytes;
    entries.delete(entry.id);
    if (entry.callKey && byCallKey.get(entry.callKey.key) === entry) byCallKey.delete(entry.callKey.key);
  }

  function find(id: string): Entry | undefined {
    const entry = entries.get(id);
    return entry && !gone(entry, clock()) ? entry : undefined;
  }

  /** Changes what a client can see. */
  function change(entry: Entry, values: Partial<Entry>, due = false): void {
    Object.assign(entry, values, { updatedAt: Math.max(Date.now(), entry.updatedAt) });
    signals.after(due ? [tellChange(entry), tellDue(entry)] : [tellChange(entry)]);
  }

  function sweep(): { requeued: number; ended: number; deleted: number } {
    const now = clock();
    swept = now;
    const counts = { requeued: 0, ended: 0, deleted: 0 };
    for (const entry of entries.values()) {
      const running = isRunning(entry, now);
      if (gone(entry, now)) {
        if (running) continue; // its last words are still kept
        drop(entry);
        counts.deleted += 1;
      } else if (entry.expiresAt <= now) {
        change(entry, { status: "failed", error: pack("An error", TIME_OVER), statusMessage: undefined });
        counts.ended += 1;
      } else if (
        entry.status === "working" &&
        entry.runFence !== undefined &&
        !running &&
        entry.dueAt <= entry.leaseUntil
      ) {
        entry.dueAt = now;
        signals.after([tellDue(entry)]);
        counts.requeued += 1;
      }
    }
    return counts;
  }

  function makeRoom(more: number, tasks: number): void {
    const full = (): boolean => entries.size + tasks > limits.maxTasks || bytes + more > limits.maxBytes;
    if (!full()) return;
    sweep();
    const now = clock();
    for (const entry of entries.values()) {
      if (!full()) return;
      if (hasEnded(entry.status) && !isRunning(entry, now)) drop(entry);
    }
    if (full()) throw new TasksFullError(limits);
  }

  function run(entry: Entry, fence: number): TaskRun {
    const record = recordOf(entry);
    /** The entry while this run has it, also when the task has ended meanwhile. */
    const held = (): Entry | undefined => {
      const found = entries.get(entry.id);
      return found === entry && found.held && found.fence === fence ? found : undefined;
    };
    /** The entry while this run may write to it. */
    const mine = (): Entry => {
      const found = held();
      if (found?.status === "working") return found;
      throw lostRun(entry.id, found?.status ?? entries.get(entry.id)?.status);
    };
    const progressed = (): boolean => [...entry.steps.values()].some((step) => step.fence === fence);
    const end = (): void => {
      entry.runFence = undefined;
      entry.held = false;
    };
    /** Ends the run and makes the task due again. */
    const requeue = (delayMs: number, fruitless: number, values: Partial<Entry>): void => {
      const working = held()?.status === "working";
      if (held()) end();
      if (!working) return;
      Object.assign(entry, { dueAt: endOf(clock(), delayMs), fruitless });
      if (Object.keys(values).length > 0) change(entry, values);
      wakes.later(delayMs, tellDue(entry));
    };

    return {
      task: record,
      steps: new Map([...entry.steps].map(([step, { text }]) => [step, unpack(text) as Json[]])), // record() packed a list
      journal: entry.journal === undefined ? undefined : unpack(entry.journal),
      answers: new Map(Object.entries(structuredClone(entry.asked?.answers ?? {}))),
      fence,
      async renew() {
        const found = held();
        if (found?.status !== "working") return false;
        found.leaseUntil = endOf(clock(), leaseMs);
        return true;
      },
      async record(step, result) {
        checkName("The name of a step", step);
        const text = pack(`The result of the step "${step}"`, result);
        const found = held();
        if (!found) throw lostRun(entry.id, entries.get(entry.id)?.status);
        weigh(found, text.length + step.length - (found.steps.get(step)?.text.length ?? -step.length));
        found.steps.set(step, { text, fence });
      },
      async report({ statusMessage, progress }) {
        change(mine(), {
          ...(statusMessage !== undefined && { statusMessage }),
          ...(progress !== undefined && { progress: pack("The progress of a task", progress) }),
        });
      },
      async ask(questions, journal) {
        const text = pack("The journal of a task", journal);
        const { asked, used } = openQuestions(questions, entry.usedKeys);
        const askedBytes = pack("The questions of a task", asked).length;
        const found = mine();
        weigh(found, text.length - (found.journal?.length ?? 0) + askedBytes - found.askedBytes);
        found.askedBytes = askedBytes;
        end();
        const due = allAnswered(asked);
        const status = due ? "working" : "input_required";
        change(
          found,
          { status, asked: structuredClone(asked), usedKeys: used, journal: text, fruitless: 0, dueAt: clock() },
          due,
        );
      },
      async finish(how) {
        const failed = how.status === "failed";
        const text = failed ? pack("The error of a task", how.error) : pack("The result of a task", how.result);
        const found = held();
        if (!found) throw lostRun(entry.id, entries.get(entry.id)?.status);
        end();
        if (found.status !== "working") return;
        weigh(found, text.length);
        const common = { status: how.status, statusMessage: how.statusMessage };
        change(found, failed ? { ...common, error: text, dead: how.dead ?? false } : { ...common, result: text });
        if (failed) return;
        for (const [step, kept] of found.steps) weigh(found, -step.length - kept.text.length);
        found.steps = new Map(); // nobody asks for them any more
      },
      async again(delayMs, statusMessage) {
        const fruitless = fruitlessAfter(entry.fruitless, progressed());
        requeue(delayMs, fruitless, statusMessage === undefined ? {} : { statusMessage });
      },
      async release(delayMs = 0) {
        requeue(delayMs, progressed() ? 0 : entry.fruitless, {});
      },
    };
  }

  return {
    shared: false,
    leaseMs,
    async create(task) {
      checkTask(task);
      const now = clock();
      const at = Date.now();
      const { callKey } = task;
      const same = callKey ? byCallKey.get(callKey.key) : entries.get(task.id);
      if (same && !gone(same, now)) {
        if (callKey && same.callKey?.digest !== callKey.digest) throw otherCall(callKey.key);
        return recordOf(same);
      }
      const call = pack("The call of a task", task.call);
      makeRoom(call.length, 1);
      if (same) drop(same);
      const entry: Entry = {
        id: task.id,
        server: task.server,
        tool: task.tool,
        owner: task.owner,
        callKey,
        call,
        ttlMs: task.ttlMs,
        pollIntervalMs: task.pollIntervalMs,
        createdAt: at,
        expiresAt: task.ttlMs === null ? Number.POSITIVE_INFINITY : endOf(now, task.ttlMs),
        status: "working",
        statusMessage: undefined,
        progress: undefined,
        updatedAt: at,
        asked: undefined,
        askedBytes: 0,
        usedKeys: [],
        journal: undefined,
        result: undefined,
        error: undefined,
        fruitless: 0,
        dead: false,
        dueAt: now,
        steps: new Map(),
        bytes: 0,
        runFence: undefined,
        fence: 0,
        held: false,
        leaseUntil: 0,
      };
      entries.set(task.id, entry);
      if (callKey) byCallKey.set(callKey.key, entry);
      weigh(entry, call.length);
      signals.after([tellDue(entry)]);
      return recordOf(entry);
    },
    async find(id) {
      const entry = find(id);
      return entry && recordOf(entry);
    },
    async answer(id, answers) {
      const entry = find(id);
      if (entry?.status !== "input_required" || !entry.asked) return false;
      pack("The answers to a task", answers);
      const asked = takeAnswers(entry.asked, answers);
      if (!asked) return false;
      const askedBytes = pack("The answers to a task", asked).length;
      makeRoom(askedBytes - entry.askedBytes, 0);
      if (find(id)?.status !== "input_required") return false; // its time was over
      weigh(entry, askedBytes - entry.askedBytes);
      entry.askedBytes = askedBytes;
      const due = allAnswered(asked);
      change(entry, { asked: structuredClone(asked), ...(due && { status: "working", dueAt: clock() }) }, due);
      return true;
    },
    async cancel(id) {
      const entry = find(id);
      if (!entry || hasEnded(entry.status)) return false;
      change(entry, { status: "cancelled" });
      return true;
    },
    async take(servers, holder) {
      checkName("The holder of a task", holder);
      const now = clock();
      if (now - swept > SWEEP_EVERY_MS) sweep();
      let next: Entry | undefined;
      for (const entry of entries.values()) {
        if (entry.status !== "working" || entry.dueAt > now || !servers.includes(entry.server)) continue;
        if (isRunning(entry, now) || entry.expiresAt <= now) continue;
        if (!next || entry.dueAt < next.dueAt) next = entry;
      }
      if (!next) return undefined;
      const { runFence } = next;
      if (runFence !== undefined) {
        next.fruitless = fruitlessAfter(
          next.fruitless,
          [...next.steps.values()].some((step) => step.fence === runFence),
        );
      }
      const fence = nextFence({ fence: next.fence, expiresAt: 0 }, now) ?? now;
      Object.assign(next, { runFence: fence, fence, held: true, leaseUntil: endOf(now, leaseMs) });
      return run(next, fence);
    },
    onDue: (servers, wake) => wakes.listen(servers.map(dueTopic), wake),
    onChange: (id, changed) => wakes.listen([changeTopic(id)], changed),
    async list(filter = {}) {
      const now = clock();
      const { server, status, dead, limit = 100 } = filter;
      return [...entries.values()]
        .filter(
          (entry) =>
            !gone(entry, now) &&
            (server === undefined || entry.server === server) &&
            (status === undefined || entry.status === status) &&
            (dead === undefined || entry.dead === dead),
        )
        .reverse() // of two made in the same millisecond the later one comes first
        .sort((one, other) => other.createdAt - one.createdAt)
        .slice(0, limit)
        .map(recordOf);
    },
    async count(server) {
      const now = clock();
      const counts = { working: 0, input_required: 0, completed: 0, failed: 0, cancelled: 0 };
      for (const entry of entries.values()) {
        if (!gone(entry, now) && (server === undefined || entry.server === server)) counts[entry.status] += 1;
      }
      return counts;
    },
    async retry(id) {
      const entry = find(id);
      if (!entry?.dead || entry.status !== "failed") return false;
      change(
        entry,
        { status: "working", dead: false, fruitless: 0, error: undefined, statusMessage: undefined, dueAt: clock() },
        true,
      );
      return true;
    },
    sweep: async () => sweep(),
    async close() {
      wakes.close();
      entries.clear();
      byCallKey.clear();
      bytes = 0;
    },
  };
}
