import type { InputRequiredResult } from "@modelcontextprotocol/client";
import { ConfigError, ProtocolError } from "@tenon/core";
import { cancelled, withSignal } from "../connection/deadline.ts";
import { pause } from "../connection/time.ts";
import type { PeerAnswers } from "../question/peer-requests.ts";
import { askHandler, parseQuestions } from "../question/questions.ts";
import { checkConsent, idsOf, isRefusal, type Visits } from "../question/url-refusals.ts";
import type { EventSource } from "../types/events.ts";
import type { ElicitationHandler, ElicitationRequest } from "../types/questions.ts";
import { hasAsked, noteAsked } from "./marks.ts";
import { asksForInput } from "./results.ts";

const MAX_ROUNDS = 10;
const STATE_ONLY_DELAY_MS = 100;

/** What a retry carries: the answers by key and the server's own state, returned as it came. */
export interface Carried {
  readonly inputResponses?: Record<string, unknown>;
  readonly requestState?: string;
}

/** One request that its server may answer with questions. */
export interface Rounds<Final> {
  readonly server: string;
  /** The request in words, for example `tools/call refund`. */
  readonly what: string;
  readonly signal: AbortSignal;
  readonly source: EventSource;
  /** Where the server may send a person. */
  readonly expectHosts: readonly string[] | undefined;
  /** Answers what is no question to a person. */
  readonly peers: PeerAnswers;
  /** Where it is heard that a visit is over; left out, a person is asked again as long as the server refuses. */
  readonly visits: Visits | undefined;
  /** Has questions answered inside the leg that carries the answers: who replays that leg asks nobody. */
  readonly answersInLeg?: boolean;
  /**
   * Sends the request; `round` is 0 first, then one more per answered round. Whoever knows the answer already never asks for
   * what the request would carry.
   */
  send(carried: () => Promise<Carried>, round: number): Promise<Final | InputRequiredResult>;
  /** Answers all questions of one round, by key, as the wire carries them. */
  answer(questions: Readonly<Record<string, ElicitationRequest>>, round: number): Promise<Record<string, unknown>>;
}

/**
 * Sends a request and answers its questions, round by round, until the answer is final (revision 2026-07-28,
 * multi-round-trip requests). The same for tools, prompts and resources.
 * @returns the final answer, the round it came in, and whether anything was asked on the way: then it is nobody else's
 * @throws TenonError `too_many_rounds`, `unsupported_question`, `declined`, and whatever `send` and `answer` throw
 */
export async function untilFinal<Final>(
  rounds: Rounds<Final>,
): Promise<{ final: Final; asked: boolean; round: number }> {
  const { server, what, signal, source, peers } = rounds;
  let asked = false;
  /** Visits the person agreed to already; asking for them again would not end them sooner. */
  const agreed = new Set<string>();
  let carried = async (): Promise<Carried> => ({});
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const result = await rounds.send(carried, round);
    if (!asksForInput(result)) return { final: result, asked: asked || hasAsked(source), round };
    asked = true;
    noteAsked(source);
    const state = result.requestState === undefined ? {} : { requestState: result.requestState };
    const { own, rest } = peers.split(result.inputRequests ?? {});
    const questions = parseQuestions(server, rest, rounds.expectHosts);
    if (isRefusal(result)) {
      const ids = idsOf(questions);
      if (rounds.visits && ids.length > 0 && ids.every((id) => agreed.has(id))) {
        await withSignal(rounds.visits.over(server, ids), signal, () => cancelled(server, what, signal.reason, false));
        continue;
      }
      checkConsent(server, what, await rounds.answer(questions, round));
      for (const id of ids) agreed.add(id);
    } else if (Object.keys({ ...own, ...questions }).length === 0) {
      await withSignal(pause(STATE_ONLY_DELAY_MS), signal, () => cancelled(server, what, signal.reason, true));
      carried = async () => state;
    } else {
      const ask = async () => (Object.keys(questions).length > 0 ? rounds.answer(questions, round) : {});
      const answers = rounds.answersInLeg ? undefined : await ask();
      carried = async () => ({
        inputResponses: { ...(answers ?? (await ask())), ...(await peers.answer(own, source, signal)) },
        ...state,
      });
    }
  }
  throw new ProtocolError(
    `${what} on server "${server}" still asks after ${MAX_ROUNDS} rounds of answers; it was given up`,
    { code: "too_many_rounds", server, maybeExecuted: true },
  );
}

/** Why a call cannot be suspended, in the words of `no_answerer`. */
export const NO_DRIVER =
  "this call brought no driver. Let an agent make it, give it a driver, or give createClient an elicitation handler";

/**
 * Has the client's handler answer the questions of one round.
 * @param suspends what can be suspended when `elicitation` is `"interrupt"`, for the error's words
 * @throws ConfigError `no_answerer` when there is no handler
 */
export async function answerByHandler(
  elicitation: ElicitationHandler | "interrupt" | undefined,
  questions: Readonly<Record<string, ElicitationRequest>>,
  request: { what: string; source: EventSource; signal: AbortSignal; suspends: string },
): Promise<Record<string, unknown>> {
  const { what, source, signal, suspends } = request;
  const { server } = source;
  if (elicitation === undefined || elicitation === "interrupt") {
    const why = elicitation ? `elicitation is "interrupt" and ${suspends}` : "no elicitation handler is set";
    throw new ConfigError(`server "${server}" asks a question in ${what}, but ${why}`, {
      code: "no_answerer",
      server,
      maybeExecuted: true,
    });
  }
  const onAbort = () => cancelled(server, what, signal.reason, true);
  const answers: Record<string, unknown> = {};
  // one after the other: a person answers one form at a time
  for (const [key, question] of Object.entries(questions)) {
    answers[key] = await askHandler(elicitation, question, source, signal, onAbort);
  }
  return answers;
}
