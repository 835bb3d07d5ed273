import type { Json } from "@tenon/core";

/**
 * Word of changes, to whoever listens now: nothing is kept. What it says is a hint to look, never the thing itself, since a
 * message may be lost while a connection is down; `onGap` says when that may have happened. In memory and on SQLite it reaches
 * this process, on Postgres every process of the database.
 */
export interface EventBus {
  /** Whether other processes hear it. */
  readonly shared: boolean;
  /**
   * Tells listeners of the topic, those of this process included. Resolves when it is on its way.
   * @param topic 1 to 200 characters
   * @param message small: ids, not contents; 7,000 bytes at most as JSON
   * @throws ConfigError `code: "event"` for a topic or message that cannot travel
   */
  publish(topic: string, message: Json): Promise<void>;
  /**
   * Listens until it is ended. Keeps no process alive by itself.
   * @param listener called in order; what it throws is reported and spoils nothing
   * @param options.onGap called when messages may have been lost, also between subscribing and the first connection: look at
   *   everything once
   * @returns ends it
   */
  subscribe(topic: string, listener: (message: Json) => void, options?: { readonly onGap?: () => void }): () => void;
  /** Ends this bus and its connection. */
  close(): Promise<void>;
}
