import {
  type ElicitRequest,
  type ElicitResult,
  ProtocolErrorCode,
  ProtocolError as SdkProtocolError,
} from "@modelcontextprotocol/client";
import { messageOf, ProtocolError, TenonError } from "@tenon/core";
import { noteAsked } from "../call/marks.ts";
import { cancelled } from "../connection/deadline.ts";
import type { ActiveCall } from "../connection/exchange.ts";
import type { EventSource } from "../types/events.ts";
import type { ElicitationHandler, ElicitationRequest } from "../types/questions.ts";
import { askHandler, checkAnswers, parseQuestion } from "./questions.ts";

function cannotInterrupt(server: string): ProtocolError {
  return new ProtocolError(
    `server "${server}" speaks the older revision of the protocol, where a question lives inside the running call, so ` +
      'the call cannot be suspended and resumed later. Give createClient `elicitation: handler` instead of "interrupt" ' +
      "to answer it while the call waits, or use a server of the newer revision; an agent may also end the call and repeat " +
      'it with the answers: mcpTools(client, { legacyQuestions: "replay" })',
    { code: "legacy_question", server, maybeExecuted: true },
  );
}

type Asker = ActiveCall & { readonly pushed: NonNullable<ActiveCall["pushed"]> };

/** The call whose driver has to do with a question that was pushed. */
function askerOf(server: string, calls: readonly ActiveCall[]): Asker {
  const willing = calls.filter((call): call is Asker => call.pushed !== undefined);
  const [asker] = willing;
  if (!asker) throw cannotInterrupt(server);
  if (calls.length === 1) return asker;
  throw new ProtocolError(
    `server "${server}" asks a question, and nothing says which of its ${calls.length} running calls it belongs to; ` +
      "give this server `concurrency: 1`",
    { code: "legacy_question", server, maybeExecuted: true },
  );
}

/** The answer a call's driver knows; where it knows none, the call ends without one. */
async function answerByDriver(
  server: string,
  question: ElicitationRequest,
  asker: Asker,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const known = asker.pushed(question);
  const answer = known && checkAnswers(server, { question }, { question: known }).question;
  if (answer) return answer;
  const message = `server "${server}" asked a question inside the call, which was ended to wait for the answer`;
  asker.deadline.fail(new ProtocolError(message, { code: "question_pushed", server }));
  // any answer, also an error, might make the server act: it is told only that its call is cancelled
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  throw cancelled(server, "a question", signal.reason, true);
}

/** What else goes with a question. */
export interface LegacyAsking {
  /** Where the server may send a person. */
  readonly expectHosts: readonly string[] | undefined;
  /** Told what is asked. */
  readonly onQuestion: (question: ElicitationRequest, source: EventSource) => void;
}

/**
 * Answers a question that a legacy server pushed inside a call. The clocks of the calls it may belong to stand still
 * meanwhile. When it cannot be answered, the server gets a JSON-RPC error and the call, where it is known, fails with
 * the reason.
 */
export async function answerLegacyQuestion(
  elicitation: ElicitationHandler | "interrupt",
  server: string,
  params: ElicitRequest["params"],
  calls: readonly ActiveCall[],
  signal: AbortSignal,
  { expectHosts, onQuestion }: LegacyAsking,
): Promise<ElicitResult> {
  const [call] = calls.length === 1 ? calls : [];
  for (const { source } of calls) noteAsked(source);
  const resume = calls.map(({ deadline }) => deadline.pause());
  try {
    if (elicitation === "interrupt") {
      const asker = askerOf(server, calls);
      const question = parseQuestion(server, params, expectHosts);
      onQuestion(question, asker.source);
      return await answerByDriver(server, question, asker, signal);
    }
    const question = parseQuestion(server, params, expectHosts);
    onQuestion(question, call?.source ?? { server });
    const until = call ? AbortSignal.any([signal, call.deadline.signal]) : signal;
    const onAbort = () => call?.deadline.error ?? cancelled(server, "a question", until.reason, true);
    return await askHandler(elicitation, question, call?.source ?? { server }, until, onAbort);
  } catch (error) {
    // everything above throws Tenon's errors; the server learns the reason, the caller gets the error itself
    const reason = messageOf(error);
    if (error instanceof TenonError) call?.deadline.fail(error);
    throw new SdkProtocolError(ProtocolErrorCode.InvalidRequest, reason);
  } finally {
    for (const go of resume) go();
  }
}
