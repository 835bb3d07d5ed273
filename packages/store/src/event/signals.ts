import type { Json } from "@tenon/core";
import type { Queries } from "../sql/side.ts";

/** One word of a change. */
export interface Signal {
  readonly topic: string;
  readonly message: Json;
}

/** Somebody who listens to a topic. */
export interface Listener {
  hear(message: Json): void;
  /** Signals may have been lost. */
  gap(): void;
}

/** How word of changes reaches listeners: the mechanism under the event bus and under the wakes of tasks. */
export interface Signals {
  /** Whether other processes hear it. */
  readonly shared: boolean;
  /** Sends on its own. */
  send(signal: Signal): Promise<void>;
  /** Sends with a transaction, heard once that is committed; where it cannot, {@link after} does. */
  inside(trx: Queries, signals: readonly Signal[]): Promise<void>;
  /** Called when the transaction is committed. */
  after(signals: readonly Signal[]): void;
  listen(topic: string, listener: Listener): () => void;
  close(): Promise<void>;
}

/** A listener must not spoil anything for others, and what it throws must not vanish. */
function report(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)));
}

/** Listeners by topic. */
export class Listeners {
  readonly #byTopic = new Map<string, Set<Listener>>();

  get size(): number {
    return this.#byTopic.size;
  }

  add(topic: string, listener: Listener): () => void {
    const own = { ...listener }; // the same listener may be added twice and removed once
    const listeners = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, listeners.add(own));
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#byTopic.get(topic) === listeners) this.#byTopic.delete(topic);
    };
  }

  tell({ topic, message }: Signal): void {
    this.#each(this.#byTopic.get(topic) ?? [], (listener) => listener.hear(message));
  }

  gap(): void {
    this.#each(
      [...this.#byTopic.values()].flatMap((listeners) => [...listeners]),
      (listener) => listener.gap(),
    );
  }

  clear(): void {
    for (const listeners of this.#byTopic.values()) listeners.clear();
    this.#byTopic.clear();
  }

  #each(listeners: Iterable<Listener>, call: (listener: Listener) => void): void {
    for (const listener of [...listeners]) {
      try {
        call(listener);
      } catch (error) {
        report(error);
      }
    }
  }
}

/** Signals inside of this process. Delivered in order, soon: never while whoever sends is still at it. */
export function createLocalSignals(): Signals {
  const listeners = new Listeners();
  const waiting: Signal[] = [];

  function send(signals: readonly Signal[]): void {
    if (listeners.size === 0 || signals.length === 0) return;
    const first = waiting.length === 0;
    // copied, so that nobody shares an object with a listener here who would not on another machine
    waiting.push(...signals.map(({ topic, message }) => ({ topic, message: structuredClone(message) })));
    if (!first) return;
    queueMicrotask(() => {
      // what a listener sends comes last
      for (let signal = waiting[0]; signal; signal = waiting[0]) {
        listeners.tell(signal);
        waiting.shift();
      }
    });
  }

  return {
    shared: false,
    send: async (signal) => send([signal]),
    inside: async () => undefined,
    after: send,
    listen: (topic, listener) => listeners.add(topic, listener),
    close: async () => listeners.clear(),
  };
}
