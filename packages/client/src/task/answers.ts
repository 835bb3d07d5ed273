import type { WireTask } from "./task.ts";

/** An answer whose question is still open after this long is sent again: a key is used once, so that does no harm. */
const RESEND_MS = 10_000;

/** What was asked and answered so far: keys are used once in the life of a task. */
export class Answers {
  readonly #sent = new Map<string, object>();
  readonly #seen = new Set<string>();
  #rounds = 0;
  #sentAt = 0;

  /** The requests of a task that have no answer yet. */
  open(task: WireTask): Record<string, unknown> {
    return Object.fromEntries(Object.entries(task.inputRequests).filter(([key]) => !this.#sent.has(key)));
  }

  /** Notes that these were asked; false when it is once too often. */
  ask(keys: readonly string[], maxRounds: number): boolean {
    if (keys.every((key) => this.#seen.has(key))) return true;
    for (const key of keys) this.#seen.add(key);
    return ++this.#rounds <= maxRounds;
  }

  /** Whether it was asked before: whoever listens is told once. */
  wasAsked(key: string): boolean {
    return this.#seen.has(key);
  }

  /** Notes answers that are sent: they are not asked for again. */
  note(answers: Readonly<Record<string, object>>): void {
    for (const [key, answer] of Object.entries(answers)) this.#sent.set(key, answer);
    this.#sentAt = performance.now();
  }

  /** What was sent, and its server still asks for after a while. */
  overdue(task: WireTask): Record<string, object> {
    if (performance.now() - this.#sentAt < RESEND_MS) return {};
    const entries = Object.keys(task.inputRequests).flatMap((key) => {
      const answer = this.#sent.get(key);
      return answer === undefined ? [] : [[key, answer] as const];
    });
    if (entries.length > 0) this.#sentAt = performance.now();
    return Object.fromEntries(entries);
  }
}
