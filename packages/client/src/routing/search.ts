import { ContractError, type TenonError } from "@tenon/core";
import type { Sent } from "../connection/endpoint.ts";
import type { Server } from "../connection/server.ts";
import { isSick } from "./breaker.ts";
import { allOpen, noReplica, type Tried } from "./problems.ts";
import { type Need, type Replica, SUITS } from "./replica.ts";

/** Stands in the place of an error where a replica was not even asked. */
const NOT_ASKED = "not_asked";

/** A tried replica and what came of it. */
export interface Failed {
  readonly tried: Tried;
  readonly error: TenonError;
  /** It only lacks what was asked for. */
  readonly lacks: boolean;
}

/** What a search for a replica has seen so far. */
export interface Search {
  order: readonly Replica[];
  /** All replicas when the order was made, and how often it was made anew because others are there. */
  members: readonly Replica[];
  renewals: number;
  /** The place that has begun what the request belongs to, and may get it while it leaves. */
  readonly begun: Server | undefined;
  readonly need: Need;
  /** Replicas of the order that are done with. */
  readonly visited: Set<Replica>;
  /** Replicas that failed the call before: they are tried last. */
  readonly failed: ReadonlySet<object> | undefined;
  readonly failures: Failed[];
}

/** What is wrong with a context, or how it is made, is wrong everywhere. */
const ABOUT_CONTEXT = new Set(["missing_context_field", "invalid_context_value", "context_failed"]);

/** Whether another replica may do better: what this one refused, or who asked, says the same everywhere. */
export function mayDoBetter(error: TenonError): boolean {
  // nobody vouches for this one, it was late, or its contract allows less
  if (error instanceof ContractError) return error.maybeExecuted === false && !ABOUT_CONTEXT.has(error.code);
  return isSick(error) || error.code === "session_lost" || error.code === "http_error" || error.code === "redirected";
}

/** The best replica that is not done with; earlier in the order wins among equals. @param below only one that suits better than this */
export function nextReplica(
  { order, begun, need, visited, failed }: Search,
  below: number = Number.POSITIVE_INFINITY,
): Replica | undefined {
  let best: Replica | undefined;
  let least = below;
  for (const replica of order) {
    if (visited.has(replica) || replica.refusal(need) !== undefined) continue;
    if (replica.leaving && (replica.server !== begun || replica.server.closed)) continue;
    const suits = failed?.has(replica) ? SUITS.resting : replica.suits(need);
    if (suits === SUITS.well) return replica;
    if (suits < least) {
      best = replica;
      least = suits;
    }
  }
  return best;
}

/** Why no replica is left for a request. @param ran whether it may have taken effect somewhere */
export function whyNone(
  server: string,
  { what }: Pick<Sent, "what">,
  { order, need, failures }: Search,
  ran: boolean,
): TenonError {
  const [first] = failures;
  if (first && failures.every(({ lacks, error }) => lacks || error instanceof ContractError)) return first.error;
  if (first && order.length === 1) return first.error;
  const blocked = [...new Set(order)].flatMap((replica) => {
    const reason = replica.refusal(need);
    const seen = failures.some(({ tried }) => tried.replica === replica.id);
    return reason === undefined || seen ? [] : [{ replica, reason }];
  });
  const open = blocked.filter(({ replica }) => replica.breaker?.admits === false).map(({ replica }) => replica);
  if (failures.length === 0 && open.length > 0) return allOpen(server, what, open);
  const tried = [
    ...failures.map((failure) => failure.tried),
    ...blocked.map(({ replica, reason }) => ({ replica: replica.id, code: NOT_ASKED, reason })),
  ];
  return noReplica(server, what, tried, failures.at(-1)?.error, ran);
}
