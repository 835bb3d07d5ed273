import type { Attributes, Histogram, ObservableResult } from "@opentelemetry/api";
import { openTelemetryApi } from "./api.ts";

/** Everything Tenon measures, by the name it has in Prometheus. */
const COUNTERS = {
  tenon_tool_calls_total: "Tool calls that ended, by outcome.",
  tenon_contract_negotiations_total: "Negotiations of the context contract, by result.",
  tenon_elicitations_total: "Questions to people that were answered, by mode and action.",
} as const;
const GAUGES = {
  tenon_breaker_state: "Circuit breakers of replicas: 0 closed, 1 half-open, 2 open.",
  tenon_tasks: "Tasks, by state.",
  tenon_legacy_sessions: "Sessions of the 2025-11-25 revision.",
} as const;

export type CounterName = keyof typeof COUNTERS;
export type GaugeName = keyof typeof GAUGES;

/** From a cached answer to a tool that works for a minute. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Milliseconds a gauge may take to be read. */
const READ_MS = 2_000;

/** One value of a gauge, and what it is the value of. */
export interface GaugeValue {
  readonly value: number;
  readonly attributes?: Attributes;
}
type Read = () => Iterable<GaugeValue> | Promise<Iterable<GaugeValue>>;

/** What was counted, by its counter and attributes: it is told when metrics are collected, and costs a call next to nothing. */
const counted = new Map<string, { readonly name: CounterName; readonly attributes: Attributes; value: number }>();
const readers = new Map<Read, GaugeName>();
/** The provider that instruments were made for: a program may register another one. */
let provider: unknown;
/** How long tool calls take; the other numbers are asked for. */
let durations: Histogram | undefined;

/** What `read` gives within two seconds: a database that hangs must not keep the other metrics from who asks for them. */
async function soon(read: Read): Promise<Iterable<GaugeValue>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("a gauge could not be read in time")), READ_MS);
  });
  try {
    return await Promise.race([Promise.resolve().then(read), late]);
  } finally {
    clearTimeout(timer);
  }
}

function observe(name: GaugeName): (result: ObservableResult) => Promise<void> {
  return async (result) => {
    const mine = [...readers].filter(([, of]) => of === name);
    // side by side: the databases of many servers that hang take as long as one. What cannot be read now leaves a gap
    const all = await Promise.all(mine.map(([read]) => soon(read).catch(() => [])));
    for (const values of all) for (const { value, attributes } of values) result.observe(value, attributes);
  };
}

/** Makes all instruments known to the program's metrics, once for each provider. @returns the one that is written to; undefined without metrics */
function current(): Histogram | undefined {
  const api = openTelemetryApi();
  if (!api) return undefined;
  const now = api.metrics.getMeterProvider();
  if (durations && provider === now) return durations;
  provider = now;
  const meter = now.getMeter("tenon");
  durations = meter.createHistogram("tenon_tool_call_duration_seconds", {
    description: "How long tool calls took.",
    unit: "s",
    advice: { explicitBucketBoundaries: SECONDS },
  });
  for (const name of Object.keys(COUNTERS) as CounterName[]) {
    meter.createObservableCounter(name, { description: COUNTERS[name] }).addCallback((result) => {
      for (const one of counted.values()) if (one.name === name) result.observe(one.value, one.attributes);
    });
  }
  for (const name of Object.keys(GAUGES) as GaugeName[]) {
    meter.createObservableGauge(name, { description: GAUGES[name] }).addCallback(observe(name));
  }
  return durations;
}

/** Adds one to a counter, where the program has metrics. */
export function count(name: CounterName, attributes: Readonly<Record<string, string>>): void {
  if (!current()) return;
  let key: string = name;
  for (const attribute in attributes) key += `\0${attribute}\0${attributes[attribute]}`;
  const known = counted.get(key);
  if (known) known.value += 1;
  else counted.set(key, { name, attributes, value: 1 });
}

/** Which side of a call counts it: a program may be both, and the same call is then seen twice. */
export type Side = "client" | "server";

/** A tool call that ended. */
export interface EndedCall {
  readonly side: Side;
  readonly server: string;
  /** Undefined where there is no such tool: what callers make up must not become labels without end. */
  readonly tool: string | undefined;
  /** `ok`, `tool_error` (an answer with `isError`), `error`, and by side what else may become of a call. */
  readonly outcome: string;
  /** By `performance.now()`. */
  readonly began: number;
}

/** Counts a tool call and notes how long it took. */
export function countCall({ side, server, tool = "unknown", outcome, began }: EndedCall): void {
  count("tenon_tool_calls_total", { server, tool, outcome, side });
  current()?.record((performance.now() - began) / 1_000, { server, tool, side });
}

/**
 * Counts how a contract was, or was not, agreed on.
 * @param result the way that was accepted, such as `0.4.2`; `refused`; on a client also `plain`, and `failed` where the server could not be asked
 */
export function countNegotiation(side: Side, result: string): void {
  count("tenon_contract_negotiations_total", { result, side });
}

/** Counts a question to a person that was answered. */
export function countAnswer(side: Side, mode: "form" | "url", action: "accept" | "decline" | "cancel"): void {
  count("tenon_elicitations_total", { mode, action, side });
}

/**
 * Has a gauge read whenever metrics are collected. Call the result to end that.
 * @example const stop = gauge("tenon_legacy_sessions", () => [{ value: sessions.size, attributes: { server } }]);
 */
export function gauge(name: GaugeName, read: Read): () => void {
  readers.set(read, name);
  return () => void readers.delete(read);
}

/** Makes the gauges known to the program's metrics, which were registered just now. */
export function startMetrics(): void {
  current();
}
