import { ConnectionError } from "@tenon/core";
import type { OutcomeStore } from "@tenon/store";
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

/**
 * A store whose operations end. One that was given up may still have been carried out, as with a connection that breaks: whoever
 * repeats the call finds out by the record.
 * @param ms for each operation
 */
export function timelyStore(store: OutcomeStore, ms: number = STORE_MS): OutcomeStore {
  const limited = <T>(what: string, work: Promise<T>): Promise<T> =>
    within(ms, work, () => {
      const message = `the store did not answer ${what} within ${ms} ms; look at its database`;
      return new ConnectionError(message, { code: "store_timeout", retryable: true, maybeExecuted: true });
    });
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
