import { isRecord } from "@tenon/core";
import { carriedTrace, currentTrace, inSpan, type OpenSpan, type TraceCarrier } from "@tenon/core/internal";

/** A saved thread, as far as its open questions say in which trace they were asked. */
interface Waiting {
  readonly tasks: ReadonlyArray<{ readonly interrupts?: ReadonlyArray<{ readonly value?: unknown }> }>;
}

/** The trace that an interrupt was raised in: whoever resumes it, today or next week, goes on in the same one. */
export function interruptTrace(): { readonly trace?: TraceCarrier } {
  const trace = currentTrace();
  return trace ? { trace } : {};
}

/** The trace of the question that a thread waits for, where it was asked in one. */
function waitingIn({ tasks }: Waiting): Record<string, unknown> {
  for (const { interrupts = [] } of tasks) {
    for (const { value } of interrupts) {
      const trace = isRecord(value) && isRecord(value.trace) ? carriedTrace(value.trace) : undefined;
      if (trace) return { ...trace };
    }
  }
  return {};
}

/** What of an agent is told: its name, where it has one. */
function nameOf(agent: unknown): string | undefined {
  const options = isRecord(agent) && isRecord(agent.options) ? agent.options : {};
  return typeof options.name === "string" ? options.name : undefined;
}

/** A run of an agent, as OpenTelemetry's conventions for agents have it. */
export interface TracedRun {
  readonly agent?: unknown;
  readonly threadId?: unknown;
  /** The thread as it was saved, where the run goes on with something that was begun: not for a new message. */
  readonly goesOnFrom?: Waiting | undefined;
}

/**
 * A run of an agent in a span of its own, above those of its calls. An answer to a question continues the trace in which it was asked;
 * a run that was cut, of which nothing is kept but its steps, begins a new one.
 */
export function inRun<T>(
  { agent, threadId, goesOnFrom }: TracedRun,
  run: (span: OpenSpan | undefined) => Promise<T>,
): Promise<T> {
  return inSpan(() => {
    const name = nameOf(agent);
    return {
      name: name === undefined ? "invoke_agent" : `invoke_agent ${name}`,
      kind: "internal",
      ...(goesOnFrom && { meta: waitingIn(goesOnFrom), continues: true }),
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        ...(name !== undefined && { "gen_ai.agent.name": name }),
        ...(typeof threadId === "string" && { "gen_ai.conversation.id": threadId }),
      },
    };
  }, run);
}
