import { setImmediate as turnOver } from "node:timers/promises";
import type { Execution } from "./checkpoint.ts";
import { stepOf } from "./checkpoint.ts";

/** The calls of one step that run at the same time: LangGraph stops them all when one ends the run. */
export class Siblings {
  readonly #running = new Map<string, Set<Promise<unknown>>>();

  /** Runs a call. */
  async run<T>(execution: Execution, work: () => T | Promise<T>): Promise<T> {
    const step = stepOf(execution);
    const begun = (async () => work())();
    if (step === undefined) return begun;
    const calls = this.#running.get(step) ?? new Set();
    this.#running.set(step, calls.add(begun));
    try {
      return await begun;
    } finally {
      calls.delete(begun);
      if (calls.size === 0 && this.#running.get(step) === calls) this.#running.delete(step);
    }
  }

  /** Waits until the other calls of the step have ended, each of which has a limit of its own, or the run is aborted. */
  async over(execution: Execution & { readonly signal?: AbortSignal | undefined }): Promise<void> {
    const step = stepOf(execution);
    if (step === undefined) return;
    await turnOver(); // they begin in the same turn of the event loop
    const { signal } = execution;
    while (!signal?.aborted) {
      const calls = this.#running.get(step);
      if (!calls) return;
      const ended = Promise.allSettled(calls);
      await (signal ? Promise.race([ended, aborted(signal)]) : ended);
      await turnOver(); // what saves their results goes first
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
