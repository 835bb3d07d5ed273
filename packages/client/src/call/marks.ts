import type { EventSource } from "../types/events.ts";

/**
 * What layers of the package know about a call besides its request. Kept by the call's runtime, an object of each call's
 * own that no interceptor can replace, so it is not lost when somebody rebuilds a request or a result.
 */
interface Marks {
  /** Differs between the clients of this process. */
  readonly client: number;
  /** Whom the server's `auth` stands for, and with which context; made when it is asked for, which few calls do. */
  readonly principal: () => string;
  /** The server asked something while the call ran. */
  asked: boolean;
  /** What is left for sending again, where a layer decides about it. */
  repeats?: RepeatBudget | undefined;
}

/** How many more sendings a call may have. Whoever sends again takes one first. */
export interface RepeatBudget {
  left: number;
}

const marks = new WeakMap<object, Marks>();
const suspensions = new WeakSet<object>();
let clients = 0;

/** A number for a new client. */
export function nextClient(): number {
  return ++clients;
}

/** Notes a new call of a client. @param principal asked only for a call whose answer is kept */
export function noteCall(runtime: object, client: number, principal: () => string): void {
  marks.set(runtime, { client, principal, asked: false });
}

/**
 * Has all sendings of a call that repeat another one come out of one budget, the client's own included, so that they do not
 * multiply.
 * @returns gives the decision back to who had it before
 */
export function limitRepeats(runtime: object, budget: RepeatBudget): () => void {
  const found = marks.get(runtime);
  if (!found) return () => {};
  const before = found.repeats;
  found.repeats = budget;
  return () => {
    found.repeats = before;
  };
}

/**
 * For one leg: whether it may be sent again, asked before it is.
 * @param times how often, unless a layer decides about its call
 */
export function repeatsOf(call: object, times: number): () => boolean {
  const own: RepeatBudget = { left: times };
  return () => {
    const budget = marks.get(call)?.repeats ?? own;
    return budget.left-- > 0;
  };
}

/** Has the source of a call's events stand for the call as well. */
export function linkSource(source: EventSource, runtime: object): void {
  const found = marks.get(runtime);
  if (found) marks.set(source, found);
}

/** The client a call belongs to; 0 for a call that no client made. */
export function clientOf(runtime: object): number {
  return marks.get(runtime)?.client ?? 0;
}

/** Whom a call is made for, where the `auth` of its server says so. */
export function principalOf(runtime: object): string {
  return marks.get(runtime)?.principal() ?? "";
}

/** Notes that the server of a call, by its runtime or source, asked something. */
export function noteAsked(call: object): void {
  const found = marks.get(call);
  if (found) found.asked = true;
}

/** True for a call during which its server asked something: its result is nobody else's (2026-07-28, caching). */
export function hasAsked(runtime: object): boolean {
  return marks.get(runtime)?.asked === true;
}

/** Passes on what a driver answers, and remembers what it throws to suspend the call. */
export async function suspending<T>(answers: Promise<T>): Promise<T> {
  try {
    return await answers;
  } catch (error) {
    if (typeof error === "object" && error !== null) suspensions.add(error);
    throw error;
  }
}

/** True for what was thrown because the call waits for an answer: it is not over, and comes again when it is resumed. */
export function isSuspension(error: unknown): boolean {
  return typeof error === "object" && error !== null && suspensions.has(error);
}
