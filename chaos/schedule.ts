import type { Random } from "./random.ts";

/** When a process is killed: at once, or in the moment that hurts most, between an effect and its record. */
export type Moment = "now" | "request" | "answer";

/** Something that goes wrong, `atMs` milliseconds after the load has begun. */
export type Fault = { readonly atMs: number } & (
  | { readonly kind: "kill"; readonly target: string; readonly moment: Moment }
  /** All connections of an agent, or of everybody to Postgres, are cut; in the middle of an answer where `moment` says so. */
  | { readonly kind: "cut"; readonly target: string; readonly moment: Moment }
  | { readonly kind: "clock"; readonly target: string; readonly jumpMs: number; readonly forMs: number }
  | { readonly kind: "disk"; readonly forMs: number }
  /** Two processes are asked to go on with the same conversation. */
  | { readonly kind: "race" }
  | { readonly kind: "postgres"; readonly how: "fast" | "immediate"; readonly forMs: number }
);
export type FaultKind = Fault["kind"];

/** What there is to break. */
export interface Breakable {
  /** Processes that are killed, by name. */
  readonly processes: readonly string[];
  /** Proxies whose connections are cut. */
  readonly relays: readonly string[];
  /** Processes with a clock of their own. */
  readonly clocks: readonly string[];
  /** How often each kind comes; kinds that the machine cannot do are left out. */
  readonly weights: Readonly<Partial<Record<FaultKind, number>>>;
  /** Moments of kills; default: all, "now" most often. */
  readonly moments?: readonly Moment[] | undefined;
}

const MOMENTS: readonly Moment[] = ["now", "now", "request", "answer"];

/** The first fault comes when there is something to break. */
const FIRST_MS = 1_500;
const GAP_MS = [700, 2_100] as const;
const HOUR_MS = 3_600_000;
/** A few seconds are a drift; minutes end tokens; more than an hour ends states and everything that is kept for an hour. */
const JUMPS_MS = [-2 * HOUR_MS, -5 * 60_000, -3_000, 3_000, 20_000, 16 * 60_000, 2 * HOUR_MS];

/** All faults of a run: the same for the same seed, whatever the processes do meanwhile. */
export function scheduleFaults(
  random: Random,
  seconds: number,
  { processes, relays, clocks, weights, moments = MOMENTS }: Breakable,
): Fault[] {
  const faults: Fault[] = [];
  let atMs = FIRST_MS;
  const make = (kind: FaultKind): Fault => {
    switch (kind) {
      case "kill":
        return { atMs, kind, target: random.pick(processes), moment: random.pick(moments) };
      case "cut":
        return { atMs, kind, target: random.pick(relays), moment: random.pick(["now", "answer"]) };
      case "clock": {
        const [target, jumpMs] = [random.pick(clocks), random.pick(JUMPS_MS)];
        return { atMs, kind, target, jumpMs, forMs: random.between(800, 3_000) };
      }
      case "disk":
        return { atMs, kind, forMs: random.between(500, 1_500) };
      case "race":
        return { atMs, kind };
      case "postgres":
        return { atMs, kind, how: random.pick(["fast", "immediate"]), forMs: random.between(0, 1_500) };
    }
  };
  // each kind once at least, however short the run is
  const first = Object.keys(weights).filter((kind) => kind !== "kill") as FaultKind[]; // the type's own keys
  for (; atMs < seconds * 1_000; atMs += random.between(...GAP_MS)) {
    const due = faults.length % 3 === 2 ? first.shift() : undefined;
    faults.push(make(due ?? random.weighted(weights)));
  }
  return faults;
}
