import type { Json, JsonObject } from "@tenon/core";

/** Where a task stands (tasks extension, SEP-2663). The last three are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** A task that begins. */
export interface NewTask {
  /** Cannot be guessed: 128 random bits at least. */
  readonly id: string;
  /** The server that offers the tool: whoever runs tasks for that server takes it. */
  readonly server: string;
  /** The tool that was called. */
  readonly tool: string;
  /** Digest of who called: only they may ask for it. */
  readonly owner: string;
  /**
   * Calls with the same key are one task. `digest` says what the key was used with: the same key with another digest is another
   * call, and refused.
   */
  readonly callKey?: { readonly key: string; readonly digest: string };
  /** What a run starts from (arguments, caller, client), in the words of the server. */
  readonly call: JsonObject;
  /** Milliseconds it is kept, from its creation; null: until somebody deletes it. */
  readonly ttlMs: number | null;
  /** Milliseconds a client should wait between two looks. */
  readonly pollIntervalMs: number;
}

/** A task as it is kept. Times are milliseconds since 1970: the time of day, the database's on Postgres. */
export interface TaskRecord extends Omit<NewTask, "callKey"> {
  readonly status: TaskStatus;
  /** For people: what it is doing. */
  readonly statusMessage?: string;
  /** How far it is, as its handler last reported. */
  readonly progress?: JsonObject;
  readonly createdAt: number;
  /** When anything a client can see last changed. */
  readonly updatedAt: number;
  /** Open questions by their key on the wire, while `input_required`: those not answered yet. */
  readonly requests: Readonly<Record<string, Json>>;
  /** What the tool returned, once `completed`. */
  readonly result?: Json;
  /** Why it `failed`, as a JSON-RPC error. */
  readonly error?: JsonObject;
  /** Runs that ended without finishing, asking or recording a step: crashes, and failures that are tried again. */
  readonly fruitless: number;
  /** Given up on: it failed until its attempts were used up. `retry` sets it going again. */
  readonly dead: boolean;
}

/** How a run of a task ended for good. */
export type TaskEnd =
  | { readonly status: "completed"; readonly result: Json; readonly statusMessage?: string }
  | { readonly status: "failed"; readonly error: JsonObject; readonly statusMessage?: string; readonly dead?: boolean };

/** A question of a task, as it goes out, and what the handler calls it. */
export interface TaskQuestion {
  /** The handler's name for it; the same question asked again gets another key on the wire. */
  readonly key: string;
  /** The request, as the protocol has it. */
  readonly request: Json;
}

/**
 * The right to run a task, held by one process until it lets go or falls silent. Everything written through it is refused with
 * a LeaseLostError once another process has taken the task over, and what is not a step also once the task has ended: the result
 * of a step that was under way when its task was cancelled is still kept. Above 64 MiB it is refused with a ConfigError `too_large`.
 */
export interface TaskRun {
  readonly task: TaskRecord;
  /** Finished steps of earlier runs by key: a list of one result, or empty for none. */
  readonly steps: ReadonlyMap<string, readonly Json[]>;
  /** What the last {@link ask} left for this run: the handler's journal. */
  readonly journal: Json | undefined;
  /** The answers that came for the questions of the last {@link ask}, by the handler's key. */
  readonly answers: ReadonlyMap<string, JsonObject>;
  /** Grows with every taker of the task. */
  readonly fence: number;
  /** Extends the right. False when it is lost, or the task was cancelled or deleted: stop. */
  renew(): Promise<boolean>;
  /** Keeps the result of a step, durable when resolved. @throws LeaseLostError */
  record(step: string, result: readonly Json[]): Promise<void>;
  /** Tells how far it is. @throws LeaseLostError */
  report(about: { readonly statusMessage?: string; readonly progress?: JsonObject }): Promise<void>;
  /**
   * Asks, and ends the run: `input_required`, until every question has an answer; then the task is due again.
   * @param questions all that are open; those of an earlier {@link ask} that are not named are open no more
   * @throws LeaseLostError
   */
  ask(questions: readonly TaskQuestion[], journal: Json): Promise<void>;
  /** Ends the task, unless it was cancelled meanwhile. @throws LeaseLostError */
  finish(end: TaskEnd): Promise<void>;
  /** Ends the run and makes the task due again in `delayMs`; counted in `fruitless`. Does nothing when the right is lost. */
  again(delayMs: number, statusMessage?: string): Promise<void>;
  /**
   * Ends the run: the task is due again, and nothing is counted (a process that stops, or that has not what the task needs).
   * @param delayMs milliseconds until then. Default 0: at once
   */
  release(delayMs?: number): Promise<void>;
}

/** Which tasks to look for. */
export interface TaskFilter {
  readonly server?: string;
  readonly status?: TaskStatus;
  /** Only those given up on. */
  readonly dead?: boolean;
  /** At most so many, newest first. Default 100. */
  readonly limit?: number;
}

/**
 * Tasks and their queue. A task that was created is durable and will be run, whatever crashes: at least once, by one process at
 * a time. One process may use the in-memory version, processes of one machine share SQLite, machines share Postgres.
 */
export interface TaskStore {
  /** Whether other processes see the same tasks. */
  readonly shared: boolean;
  /** Milliseconds a run lasts unless it is renewed: how long a crashed process holds up its task. */
  readonly leaseMs: number;
  /**
   * Keeps the task and makes it due, both or neither.
   * @returns the task of an earlier call with the same `callKey`, if there is one
   * @throws ConfigError `code: "call_key"` when the key was used with another digest, `"task"` for what cannot be kept,
   *   `"too_large"` above 64 MiB; TasksFullError in memory when every place is taken by a task that has not ended
   */
  create(task: NewTask): Promise<TaskRecord>;
  /** Undefined when there is none, or its time is over and it has ended. */
  find(id: string): Promise<TaskRecord | undefined>;
  /**
   * Keeps answers to open questions; when every one has an answer the task is due again. Keys that are not open are ignored.
   * @param answers by the key on the wire
   * @returns whether any of them counted
   */
  answer(id: string, answers: Readonly<Record<string, JsonObject>>): Promise<boolean>;
  /** Ends the task as `cancelled`, unless it has ended; whoever runs it is told. False when it had ended. */
  cancel(id: string): Promise<boolean>;
  /**
   * The next due task of one of these servers.
   * @param holder says who takes it, for people and logs
   */
  take(servers: readonly string[], holder: string): Promise<TaskRun | undefined>;
  /**
   * Calls `wake` when a task of one of these servers may have become due; it may be called for nothing, and a call may be lost
   * (a connection broke, or another process on SQLite made it due), so look now and then all the same. Keeps no process alive.
   * @returns ends it
   */
  onDue(servers: readonly string[], wake: () => void): () => void;
  /**
   * Calls `changed` when something a client can see of the task changed, or may have.
   * @returns ends it
   */
  onChange(id: string, changed: () => void): () => void;
  /** Newest first. */
  list(filter?: TaskFilter): Promise<readonly TaskRecord[]>;
  /** How many tasks there are in each status. */
  count(server?: string): Promise<Readonly<Record<TaskStatus, number>>>;
  /** Sets a task that was given up on going again, from its last finished step. False when it is none. */
  retry(id: string): Promise<boolean>;
  /**
   * Makes tasks whose runner fell silent due again, ends those whose time is over, deletes ended ones whose time is over.
   * Stores also do this on their own now and then.
   */
  sweep(): Promise<{ readonly requeued: number; readonly ended: number; readonly deleted: number }>;
  /** Ends this store; what it holds stays where it is kept. */
  close(): Promise<void>;
}
