/**
 * Everything that leans on LangGraph's private run configuration, in one place: contract tests beside this file fail when a
 * new LangGraph minor changes it, so the peer range stays pinned to one minor.
 */
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { getCurrentTaskInput, interrupt, isGraphInterrupt, task } from "@langchain/langgraph";

const CALL = "__pregel_call"; // schedules a memoised sub-task of the running task
const CHECKPOINTER = "__pregel_checkpointer"; // present when the run is saved
const SCRATCHPAD = "__pregel_scratchpad"; // one fresh object per execution of a task, shared by retries inside it
const READ = "__pregel_read"; // reads a channel of the running graph by name; throws for one there is not
const AGENT_TYPE = "ls_agent_type"; // set by LangChain's createAgent on every run

/** The part of a run's configuration (or of a middleware's runtime) this file reads. */
export interface Execution {
  readonly configurable?: Readonly<Record<string, unknown>> | undefined;
}

interface Notes {
  /** Interrupts that were raised, by tool call: they must leave the task whoever catches them on the way. */
  readonly parked: Map<string, unknown>;
  /** Tool calls that run under `mcpMiddleware`. */
  readonly guarded: Set<string>;
}

const notes = new WeakMap<object, Notes>();

function notesOf(execution: Execution): Notes | undefined {
  const scratchpad = execution.configurable?.[SCRATCHPAD];
  if (typeof scratchpad !== "object" || scratchpad === null) return undefined;
  let found = notes.get(scratchpad);
  if (!found) {
    found = { parked: new Map(), guarded: new Set() };
    notes.set(scratchpad, found);
  }
  return found;
}

/** Whether the run can be suspended and resumed later: it is inside a graph and its steps are saved. */
export function canPause(execution: Execution): boolean {
  return typeof execution.configurable?.[CALL] === "function" && Boolean(execution.configurable[CHECKPOINTER]);
}

/** What the running task works on: in a node of a graph its state. Undefined outside a graph. */
export function taskInput(execution: Execution): unknown {
  try {
    return getCurrentTaskInput({ configurable: { ...execution.configurable } });
  } catch {
    return undefined; // it throws where there is no task
  }
}

/** Whether the run belongs to LangChain's `createAgent`, whose graph does not follow a tool's `goto`. */
export function insideCreateAgent(execution: Execution): boolean {
  return typeof execution.configurable?.[AGENT_TYPE] === "string";
}

/** Which of these keys the graph's state does not have; none where that cannot be told. LangGraph drops them silently. */
export function unknownStateKeys(execution: Execution, keys: readonly string[]): readonly string[] {
  const read = execution.configurable?.[READ];
  if (typeof read !== "function") return [];
  return keys.filter((key) => {
    try {
      read(key);
      return false;
    } catch {
      return true;
    }
  });
}

/** Whether the running graph is a step of another graph. */
export function hasParentGraph(execution: Execution): boolean {
  const namespace = execution.configurable?.checkpoint_ns;
  return typeof namespace === "string" && namespace.includes("|");
}

/** Names the step of a thread in which a task runs, alike for the tasks of one step of one graph; undefined outside a thread. */
export function stepOf(execution: Execution): string | undefined {
  const { thread_id: threadId, checkpoint_ns: namespace } = execution.configurable ?? {};
  if (threadId === undefined || threadId === null) return undefined;
  const path = typeof namespace === "string" ? namespace : "";
  return JSON.stringify([threadId, path.slice(0, Math.max(0, path.lastIndexOf("|")))]); // the last part is the task's own
}

/**
 * Runs `work` once per task of the graph and returns its recorded result when the task is executed again after a pause.
 * Calls must come in the same order every time. The result must be JSON. Where nothing is saved, `work` just runs.
 */
export async function remember<T>(execution: Execution, name: string, work: () => Promise<T>): Promise<T> {
  if (!canPause(execution)) return work();
  const recorded = task({ name }, work);
  // an interceptor or a connection pool may have left the async context of the run
  return AsyncLocalStorageProviderSingleton.runWithConfig(execution, () => recorded());
}

/**
 * Suspends the run with `payload` and returns the value it is resumed with. The interrupt is parked under `callId`: whoever
 * catches it on its way out, `rethrowParked` raises it again.
 */
export function pause(execution: Execution, callId: string, payload: unknown): unknown {
  try {
    return AsyncLocalStorageProviderSingleton.runWithConfig(execution, () => interrupt(payload));
  } catch (error) {
    if (isGraphInterrupt(error)) notesOf(execution)?.parked.set(callId, error);
    throw error;
  }
}

/** Raises the interrupt that this call raised before in the same execution, if any. */
export function rethrowParked(execution: Execution, callId: string): void {
  const parked = notesOf(execution)?.parked.get(callId);
  if (parked !== undefined) throw parked;
}

/** Notes that this call runs under `mcpMiddleware`. */
export function markGuarded(execution: Execution, callId: string): void {
  notesOf(execution)?.guarded.add(callId);
}

/** Whether this call runs under `mcpMiddleware`. */
export function isGuarded(execution: Execution, callId: string): boolean {
  return notesOf(execution)?.guarded.has(callId) ?? false;
}
