import { ConnectionError } from "@tenon/core";
import type { ContextStore, OutcomeStore, TaskRun, TaskStore } from "@tenon/store";
import { deadline } from "./deadlines.ts";

/** Milliseconds one operation of a store may take: a database that hangs must not hang whoever needs it. */
export const STORE_MS = 30_000;

/** What `work` gives, or the error that `late` makes when it gives nothing in so many milliseconds. */
export function within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const takeBack = deadline(ms, () => reject(late()));
    work.then(resolve, reject).finally(takeBack);
  });
}

/** Ends what a store does after so many milliseconds. */
const limiter =
  (ms: number) =>
  <T>(what: string, work: Promise<T>): Promise<T> =>
    within(ms, work, () => {
      const message = `the store did not answer ${what} within ${ms} ms; look at its database`;
      return new ConnectionError(message, { code: "store_timeout", retryable: true, maybeExecuted: true });
    });

/**
 * A store whose operations end. One that was given up may still have been carried out, as with a connection that breaks: whoever
 * repeats the call finds out by the record.
 * @param ms for each operation
 */
export function timelyStore(store: OutcomeStore, ms: number = STORE_MS): OutcomeStore {
  const limited = limiter(ms);
  return {
    shared: store.shared,
    leaseMs: store.leaseMs,
    claim: (request) => limited("claim", store.claim(request)),
    begin: (lease) => limited("begin", store.begin(lease)),
    record: (lease, name, value) => limited("record", store.record(lease, name, value)),
    renew: (lease) => limited("renew", store.renew(lease)),
    finish: (lease, outcome, options) => limited("finish", store.finish(lease, outcome, options)),
    release: (lease) => limited("release", store.release(lease)),
    putBlob: (id, text, ttlMs) => limited("putBlob", store.putBlob(id, text, ttlMs)),
    getBlob: (id) => limited("getBlob", store.getBlob(id)),
    sweep: () => store.sweep(),
    close: () => store.close(),
  };
}

/** The same for tasks, and for the runs that are taken from it. */
export function timelyTasks(store: TaskStore, ms: number = STORE_MS): TaskStore {
  const limited = limiter(ms);
  const timely = (run: TaskRun): TaskRun => ({
    task: run.task,
    steps: run.steps,
    journal: run.journal,
    answers: run.answers,
    fence: run.fence,
    renew: () => limited("renew", run.renew()),
    record: (step, result) => limited("record", run.record(step, result)),
    report: (about) => limited("report", run.report(about)),
    ask: (questions, journal) => limited("ask", run.ask(questions, journal)),
    finish: (end) => limited("finish", run.finish(end)),
    again: (delayMs, statusMessage) => limited("again", run.again(delayMs, statusMessage)),
    release: (delayMs) => limited("release", run.release(delayMs)),
  });
  return {
    shared: store.shared,
    leaseMs: store.leaseMs,
    create: (task) => limited("create", store.create(task)),
    find: (id) => limited("find", store.find(id)),
    answer: (id, answers) => limited("answer", store.answer(id, answers)),
    cancel: (id) => limited("cancel", store.cancel(id)),
    async take(servers, holder) {
      const run = await limited("take", store.take(servers, holder));
      return run && timely(run);
    },
    onDue: (servers, wake) => store.onDue(servers, wake),
    onChange: (id, changed) => store.onChange(id, changed),
    list: (filter) => limited("list", store.list(filter)),
    count: (server) => limited("count", store.count(server)),
    retry: (id) => limited("retry", store.retry(id)),
    sweep: () => limited("sweep", store.sweep()),
    close: () => store.close(),
  };
}

/** The same for contexts of sessions. */
export function timelyContexts(store: ContextStore, ms: number = STORE_MS): ContextStore {
  const limited = limiter(ms);
  return {
    shared: store.shared,
    put: (key, context, ttlMs) => limited("put", store.put(key, context, ttlMs)),
    get: (key) => limited("get", store.get(key)),
    sweep: () => limited("sweep", store.sweep()),
    close: () => store.close(),
  };
}
