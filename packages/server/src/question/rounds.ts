import { randomUUID } from "node:crypto";
import {
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
} from "@modelcontextprotocol/server";
import { ConfigError, type Json, type JsonObject, META } from "@tenon/core";
import { countAnswer, digest, toJson } from "@tenon/core/internal";
import { type Claim, claimOrWait, type Lease, LeaseLostError, type OutcomeStore } from "@tenon/store";
import { identityOfCaller } from "../auth/caller.ts";
import { refusedByStore } from "../errors.ts";
import type { Exchange } from "../handler/context.ts";
import { emptyJournal, type Journal, type StepResult } from "../handler/journal.ts";
import { type Linear, type Recorder, type Round, type RoundLimit, runLinear } from "../handler/linear.ts";
import { checkStepName } from "../handler/step-name.ts";
import { requestLog, type ServerLog } from "../log.ts";
import { readAnswer } from "./asking.ts";
import { refuse, type Seal } from "./seal.ts";
import { closeState, openState } from "./states.ts";

/** What all calls of a server share to be answered once. */
export interface Keeping {
  /** The name of the server that is asked: others may share its store and its keys, and are not answered for by it. */
  readonly serverName: string;
  readonly seal: Seal;
  readonly store: OutcomeStore;
  readonly log: ServerLog;
  /** How long a question may wait for its answer, and its outcome for a retry. */
  readonly questionTtlMs: number;
  /** How long an answered visit to a page waits for the page before it is asked again. */
  readonly pageWaitMs: number;
  /** Journals above this many bytes go to the store. */
  readonly spillBytes: number;
}

/** The call an exchange makes. */
export interface Target {
  readonly method: string;
  readonly name: string;
  readonly args: unknown;
  /** Whether the call's idempotency key, if it brings one, makes repeated calls one. */
  readonly idempotent?: boolean | undefined;
  /** How long one run of its handler may take, so that no retry waits for ever for one that never ends. */
  readonly limit?: RoundLimit | undefined;
  /** Makes the call a task when its handler asks for it; undefined where it cannot become one. */
  readonly startTask?: ((journal: Journal) => Promise<Result>) | undefined;
}

/** How the end of a handler becomes the wire's result. */
export interface Wire<T> {
  done(value: T): Result | Promise<Result>;
  /** @throws ProtocolError for what the wire says as an error of its own */
  failed(error: unknown): Result;
}

/** What a retry of an answered round or of an idempotent call gets. */
type Outcome = { readonly result: Json } | { readonly error: { code: number; message: string; data?: Json } };

type Yours = Extract<Claim, { state: "yours" }>;

/**
 * Outcomes are kept this much longer than a state can be used: the state's time is counted by whichever process made it, the
 * record's by the store, and a clock that is behind or set back must not let a state outlive its record.
 */
const CLOCK_MARGIN_MS = 60 * 60_000;
/** How long a retry waits for the first one to finish: less than clients wait for us. */
const WAIT_MS = 50_000;
const LONGEST_KEY = 256;

const stillRunning = (): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InternalError, "The same call still runs; send the same request again later", {
    reason: "running",
  });

/** The answers to the open round's questions: those given before and those of this request; anything else is ignored. */
function answersOf(journal: Journal, responses: Readonly<Record<string, unknown>>): Map<string, JsonObject> {
  const answers = new Map<string, JsonObject>();
  for (const [key, { kind }] of journal.asked) {
    const given = Object.hasOwn(responses, key) ? responses[key] : journal.given.get(key);
    const answer = readAnswer(given, kind);
    if (answer) answers.set(key, answer);
  }
  return answers;
}

/** @throws ProtocolError -32602 for a key that is none */
export function idempotencyKeyOf(exchange: Exchange): string | undefined {
  const key = exchange.meta[META.idempotencyKey];
  if (key === undefined || (typeof key === "string" && key !== "" && key.length <= LONGEST_KEY)) return key;
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `_meta["${META.idempotencyKey}"] must be a text of 1 to ${LONGEST_KEY} characters`,
  );
}

function replay(outcome: Json): Result {
  const { result, error } = outcome as unknown as {
    result?: Result;
    error?: { code: number; message: string; data?: Json };
  }; // an Outcome, finalResult() made it
  if (error) throw new ProtocolError(error.code, error.message, error.data);
  return { ...result, _meta: { ...result?._meta, [META.replayed]: true } };
}

/** Renews a lease until told to stop; a lease that is lost shows when the next thing is recorded. */
function keepAlive({ store }: Keeping, log: ServerLog, lease: Lease): () => void {
  const timer = setInterval(() => {
    store.renew(lease).catch((error: unknown) => log("warning", "renewing a lease failed", { error }));
  }, store.leaseMs / 3);
  timer.unref();
  return () => clearInterval(timer);
}

/** One request on its way through its round. */
interface Call<T> {
  /** Says which request a line belongs to. */
  readonly log: ServerLog;
  readonly keeping: Keeping;
  readonly exchange: Exchange;
  /** What its states belong to. */
  readonly binding: unknown;
  readonly handler: (linear: Linear, journal: () => Journal) => T | Promise<T>;
  readonly wire: Wire<T>;
  readonly limit: RoundLimit | undefined;
  readonly startTask: Target["startTask"];
}

const keptMs = ({ questionTtlMs }: Keeping): number => questionTtlMs + CLOCK_MARGIN_MS;

/**
 * Takes the right to work on `key`, or finds the outcome of who had it before.
 * @param about digest of the answers or arguments the key is used with
 * @param other the refusal when it was used with others
 */
async function claimFor(
  { log, keeping, exchange }: Pick<Call<unknown>, "log" | "keeping" | "exchange">,
  key: string,
  about: string,
  other: string,
): Promise<{ claim: Yours } | { replayed: Result }> {
  const request = { key, digest: about, ttlMs: keptMs(keeping) };
  const claim = await claimOrWait(keeping.store, request, { waitMs: WAIT_MS, signal: exchange.signal }).catch(
    (error: unknown) => {
      throw refusedByStore(log, "A call", error);
    },
  );
  switch (claim.state) {
    case "yours":
      return { claim };
    case "finished":
      return { replayed: replay(claim.outcome) };
    case "running":
      throw stillRunning();
    case "other":
      throw refuse("answered", other);
  }
}

/**
 * Answers one request of a method that may ask questions, so that a complete set of valid answers takes effect once: the same
 * retry gets the recorded outcome, one that comes while the first still runs waits for it, other answers are refused.
 * @throws ProtocolError -32602 with `data.reason` `expired`, `answered`, `foreign` or `tampered`
 */
export async function answerOnce<T>(
  keeping: Keeping,
  exchange: Exchange,
  target: Target,
  handler: (linear: Linear, journal: () => Journal) => T | Promise<T>,
  wire: Wire<T>,
): Promise<Result> {
  const principal = identityOfCaller(exchange.caller); // of one caller, states and keys are nothing to another
  const { serverName } = keeping;
  const binding = [principal, serverName, target.method, target.name, target.args];
  const { limit, startTask } = target;
  const log = requestLog(keeping.log, exchange);
  const call: Call<T> = { log, keeping, exchange, binding, handler, wire, limit, startTask };
  if (exchange.requestState !== undefined) return answerRetry(call, exchange.requestState);
  const key = target.idempotent ? idempotencyKeyOf(exchange) : undefined;
  if (key !== undefined) {
    return answerKeyed(
      call,
      `call:${digest([principal, serverName, target.method, target.name, key])}`,
      digest(target.args),
    );
  }
  let first: RoundStart | undefined; // most calls ask nothing and take no step: they never have a journal
  const start = (): RoundStart => {
    first ??= firstRound(emptyJournal(randomUUID()));
    return first;
  };
  return runRound(call, start, undefined);
}

/** A call under an idempotency key: its record repeats the newest outcome to whoever repeats it. */
async function answerKeyed<T>(call: Call<T>, record: string, args: string): Promise<Result> {
  const other = "The idempotency key was used for a call with other arguments; a new call needs a new key";
  const found = await claimFor(call, record, args, other);
  if ("replayed" in found) return found.replayed;
  const start = firstRound(emptyJournal(record, record));
  return runRound(call, () => start, found.claim);
}

/** Counts what people said to the questions of a round, once: whoever repeats the round is answered from what was kept. */
function countAnswers({ asked }: Journal, answers: ReadonlyMap<string, JsonObject>): void {
  for (const [key, { kind }] of asked) {
    const action = answers.get(key)?.action;
    if (kind !== "form" && kind !== "url") continue;
    if (action === "accept" || action === "decline" || action === "cancel") countAnswer("server", kind, action);
  }
}

/** A request that brings a state back, with answers or without. */
async function answerRetry<T>(call: Call<T>, requestState: string): Promise<Result> {
  const { keeping, exchange, binding } = call;
  const { id, journal, late } = await openState(keeping, requestState, binding);
  const answers = answersOf(journal, exchange.inputResponses ?? {});
  const round = { id, journal, answers, complete: answers.size === journal.asked.size };
  if (!round.complete && !late) return runRound(call, () => round, undefined);
  const other = "The question was answered already, with another answer";
  const found = await claimFor(call, `state:${id}`, digest([...answers].sort()), other);
  if ("replayed" in found) return found.replayed;
  if (late && Object.keys(found.claim.progress).length === 0) {
    // nobody answered it in time, so starting again repeats nothing
    await keeping.store.release(found.claim.lease);
    throw late;
  }
  countAnswers(journal, answers);
  return runRound(call, () => round, found.claim);
}

/** What one round of a call starts from, before what a crash left of it is added. */
interface RoundStart extends Omit<Round, "recorder"> {
  /** The state it answers; undefined in the first round. */
  readonly id: string | undefined;
}

const firstRound = (journal: Journal): RoundStart => ({ id: undefined, journal, answers: new Map(), complete: true });

/** @param claim the right to record what this round does; undefined where nobody may come for it again */
async function runRound<T>(call: Call<T>, start: () => RoundStart, claim: Yours | undefined): Promise<Result> {
  const { log, keeping, exchange, binding, handler, wire, limit, startTask } = call;
  for (const [step, result] of Object.entries(claim?.progress ?? {})) {
    start().journal.steps.set(step, result as unknown as StepResult); // recorded below
  }
  const { store } = keeping;
  const recorder: Recorder | undefined = claim && {
    check: checkStepName,
    begin: () => store.begin(claim.lease),
    record: (step, result) => store.record(claim.lease, step, result),
  };
  const stop = claim ? keepAlive(keeping, log, claim.lease) : () => undefined;
  /** Keeps the outcome: for this round's state, and for the whole call where it has a record. */
  const keep = async (outcome: Outcome): Promise<void> => {
    if (!claim) return;
    const { journal } = start();
    const also = journal.record !== undefined && journal.record !== claim.lease.key ? [journal.record] : [];
    await store.finish(claim.lease, toJson(outcome), { ttlMs: keptMs(keeping), also });
  };
  const letGo = async (): Promise<void> => {
    if (!claim) return;
    // the lease lapses anyway, so a store that cannot be reached must not hide why the round ended
    await store.release(claim.lease).catch((error: unknown) => log("warning", "releasing a lease failed", { error }));
  };
  try {
    const ended = await runLinear<T>(
      () => ({ ...start(), recorder }),
      (linear) => handler(linear, () => start().journal),
      limit,
    );
    // steps of earlier rounds were done: that this request did nothing would be read as if they were not
    if ("unrecorded" in ended) {
      throw start().journal.steps.size > 0 ? ended.unrecorded : refusedByStore(log, "A call", ended.unrecorded);
    }
    if ("refused" in ended) {
      await letGo();
      return wire.failed(ended.refused);
    }
    if ("questions" in ended) {
      const { id: answered, journal } = start();
      const id = ended.consumed || answered === undefined ? randomUUID() : answered;
      const result: InputRequiredResult = inputRequired({
        inputRequests: Object.fromEntries(ended.questions),
        requestState: await closeState(keeping, journal, binding, id),
      });
      if (claim) await (ended.consumed ? keep({ result: toJson(result) }) : letGo());
      return result;
    }
    if ("left" in ended) {
      if (!startTask) throw new ConfigError("this call cannot become a task", { code: "start_task" });
      const result = await startTask(start().journal);
      if (claim) await keep({ result: toJson(result) });
      return result;
    }
    // whoever stopped listening did not get this failure, which may be no more than that they stopped
    if ("failed" in ended && exchange.signal.aborted) {
      await letGo();
      return wire.failed(ended.failed);
    }
    const final = await finalResult(ended, wire, claim !== undefined);
    if (claim) await keep(final.outcome);
    if ("error" in final) throw final.error;
    return final.result;
  } catch (error) {
    if (error instanceof LeaseLostError) throw stillRunning();
    await letGo(); // does nothing when the outcome was kept
    throw error;
  } finally {
    stop();
  }
}

/** The result or protocol error that goes out, and how it is recorded. */
async function finalResult<T>(
  ended: { readonly done: T } | { readonly failed: unknown },
  wire: Wire<T>,
  recorded: boolean,
): Promise<({ result: Result } | { error: ProtocolError }) & { outcome: Outcome }> {
  const both = (result: Result) => ({ result, outcome: { result: recorded ? toJson(result, "result") : null } });
  try {
    if ("failed" in ended) return both(wire.failed(ended.failed));
    try {
      return both(await wire.done(ended.done));
    } catch (error) {
      return both(wire.failed(error));
    }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code, message, data } = error;
    return { error, outcome: { error: { code, message, ...(data !== undefined && { data: toJson(data) }) } } };
  }
}
