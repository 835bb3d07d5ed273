import { isCommand } from "@langchain/langgraph";
import { ConfigError, cleanText, isRecord } from "@tenon/core";
import { lacksCheckpointer } from "../question/open-questions.ts";
import { rootOf } from "../tool/failures.ts";
import { inRun, type TracedRun } from "./run-trace.ts";

/** What can be run by `invokeAgent` and `streamAgent`: what `createAgent` returns, or a compiled graph. */
export interface InvokableAgent {
  // parameters of methods are compared both ways, so every agent fits, whatever its state
  invoke(input: never, config?: never): Promise<unknown>;
  stream(input: never, config?: never): Promise<unknown>;
  getState(config: never): Promise<{
    readonly values: unknown;
    readonly next: readonly string[];
    /** Steps that are due, those included whose results are saved although their end is not. */
    readonly tasks?: readonly {
      readonly name: string;
      readonly interrupts?: ReadonlyArray<{ readonly value?: unknown }>;
      /** What the step threw, where it did: an error, or what is saved of one. */
      readonly error?: unknown;
    }[];
  }>;
  /** The compiled graph inside what `createAgent` returns. */
  readonly graph?: unknown;
}

/** Characters of a failed step's own words. */
const MAX_WORDS = 300;

type Input<Agent extends InvokableAgent> = Parameters<Agent["invoke"]>[0];
type Config<Agent extends InvokableAgent> = Parameters<Agent["invoke"]>[1];

/**
 * A step must be saved before the next one acts: an effect of a step that is not saved cannot be recognised after a crash,
 * because the repeated step has another id and so another idempotency key.
 */
export const DURABILITY = "sync";

/**
 * What runs a thread with these saved values. `createAgent` spreads the saved state into an input as soon as it has middleware,
 * which doubles every channel with a reducer; its graph does not, but only the agent fills in the defaults of middleware, which
 * a new thread needs.
 */
export function runnerOf<Agent extends { readonly graph?: unknown }>(agent: Agent, values: unknown): Agent {
  const started = isRecord(values) && Object.keys(values).length > 0;
  // createAgent's graph has the agent's own methods
  return started && agent.graph ? (agent.graph as Agent) : agent;
}

type Task = NonNullable<Awaited<ReturnType<InvokableAgent["getState"]>>["tasks"]>[number];

/** New input to a thread that has stopped: why it did, and how it goes on. */
function threadWaits(due: readonly string[], tasks: readonly Task[]): ConfigError {
  const asks = tasks.some(({ interrupts = [] }) => interrupts.length > 0);
  const failed = asks ? [] : tasks.filter(({ error }) => error !== undefined && error !== null);
  const told = failed.map(({ name, error }) => {
    const words = isRecord(error) && typeof error.message === "string" ? error.message : "";
    return `${name} failed${words && ` (${cleanText(words).slice(0, MAX_WORDS)})`}`;
  });
  const message =
    told.length > 0
      ? `The thread has stopped where ${told.join(" and ")}. Where its state is the reason, correct that with ` +
        "updateState(config, values); then continue with null as the input. New input would drop what is left of it."
      : `The thread has stopped at ${due.join(", ")}: ${asks ? "a question is open" : "a run was cut, or stopped before this step"}. New ` +
        "input would leave what is begun without its end, such as tool calls without an answer, which models refuse. " +
        (asks ? "Answer what openQuestions() gives with a Command." : "Continue with null as the input.");
  const names = failed.map(({ name }) => name);
  return new ConfigError(message, {
    code: "thread_waits",
    data: { next: [...due], ...(names.length > 0 && { failed: names }) },
  });
}

const UNSAVED = { values: {}, next: [], tasks: [] };

function threadOf(config: unknown): unknown {
  return isRecord(config) && isRecord(config.configurable) ? config.configurable.thread_id : undefined;
}

async function savedRunner<Agent extends InvokableAgent>(
  agent: Agent,
  input: unknown,
  config: Config<Agent>,
): Promise<{ runner: Agent; goesOnFrom: TracedRun["goesOnFrom"] }> {
  // the agent takes its own configuration, whatever that is
  const {
    values,
    next,
    tasks = [],
  } = await agent.getState(config as never).catch((error: unknown) => {
    // without a checkpointer or a thread nothing is saved that could be spread; a saver that fails has said nothing of the kind
    if (lacksCheckpointer(error) || threadOf(config) === undefined) return UNSAVED;
    throw error;
  });
  const due = next.length > 0 ? next : tasks.map(({ name }) => name);
  if (due.length > 0 && input !== null && !isCommand(input)) {
    throw threadWaits(due, tasks);
  }
  const goesOnFrom = input === null || isCommand(input) ? { tasks } : undefined;
  return { runner: runnerOf(agent, values), goesOnFrom };
}

function saving(config: unknown): never {
  return { durability: DURABILITY, ...(isRecord(config) && config) } as never; // the agent's own configuration, and one key of LangGraph's
}

/**
 * `agent.invoke` for threads that go on: an agent of `createAgent` with middleware adds what the thread has already to every
 * input, so that an audit log or any other state with a reducer doubles with each turn and each resume. This does not, and it
 * saves each step before the next one begins (`durability: "sync"`, unless the configuration says otherwise).
 *
 * @param input null continues a run that was cut, a Command resumes one that waits for an answer
 * @throws ConfigError `code: "thread_waits"` for new input to a thread that waits for an answer or was cut
 * @example
 * const result = await invokeAgent(agent, { messages: [new HumanMessage("hello")] }, { configurable: { thread_id: "t" } });
 */
export async function invokeAgent<Agent extends InvokableAgent>(
  agent: Agent,
  input: Input<Agent>,
  config?: Config<Agent>,
): Promise<Awaited<ReturnType<Agent["invoke"]>>> {
  const { runner, goesOnFrom } = await savedRunner(agent, input, config);
  const result = await inRun({ agent, threadId: threadOf(config), goesOnFrom }, () =>
    runner.invoke(input, saving(config)),
  ).catch((thrown: unknown) => {
    throw rootOf(thrown); // a middleware around the model wraps the model's errors
  });
  return result as Awaited<ReturnType<Agent["invoke"]>>; // the graph's result is the agent's
}

/** `agent.stream`, as `invokeAgent` is `agent.invoke`. */
export async function streamAgent<Agent extends InvokableAgent>(
  agent: Agent,
  input: Parameters<Agent["stream"]>[0],
  config?: Parameters<Agent["stream"]>[1],
): Promise<Awaited<ReturnType<Agent["stream"]>>> {
  const { runner } = await savedRunner(agent, input, config);
  const stream = await runner.stream(input, saving(config));
  return stream as Awaited<ReturnType<Agent["stream"]>>; // the graph's stream is the agent's
}
