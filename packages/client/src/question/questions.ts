import type { ElicitResult } from "@modelcontextprotocol/client";
import { ConfigError, isRecord, type JsonObject, messageOf, ProtocolError, TenonError } from "@tenon/core";
import { countAnswer, shownValue } from "@tenon/core/internal";
import { textAt } from "../catalog/pages.ts";
import { withSignal } from "../connection/deadline.ts";
import { checkQuestionUrl } from "../trust/url.ts";
import type { EventSource } from "../types/events.ts";
import type { AnswerProblem, ElicitationAnswer, ElicitationHandler, ElicitationRequest } from "../types/questions.ts";
import { checkAnswer } from "./field-values.ts";
import { parseFields } from "./fields.ts";

/** How often one question is put to the handler. */
const MAX_ATTEMPTS = 3;

/**
 * Reads the parameters of an `elicitation/create`. The address of a url question is checked before anybody sees it.
 * @param expectHosts where this server may send a person; any https host when left out
 * @throws ProtocolError `unsupported_question`, TrustError `unsafe_url` or `unexpected_host`
 */
export function parseQuestion(server: string, params: unknown, expectHosts?: readonly string[]): ElicitationRequest {
  const given = isRecord(params) ? params : {};
  const message = textAt(given, "message") ?? "";
  if (given.mode === "url") {
    const url = textAt(given, "url");
    if (url === undefined) {
      const got = shownValue(given.url);
      throw new ProtocolError(`server "${server}" asks to open an address but sends none: url is ${got}`, {
        code: "unsupported_question",
        server,
        maybeExecuted: true,
      });
    }
    const elicitationId = textAt(given, "elicitationId");
    const checked = checkQuestionUrl(url, server, expectHosts);
    return { mode: "url", message, ...checked, ...(elicitationId !== undefined && { elicitationId }) };
  }
  const fields = parseFields(given.requestedSchema);
  return { mode: "form", message, fields, schema: given.requestedSchema as JsonObject }; // parseFields found an object
}

/**
 * Reads the questions of one round.
 * @throws ProtocolError `unsupported_question` for a kind of input this client does not offer, TrustError as `parseQuestion`
 */
export function parseQuestions(
  server: string,
  inputRequests: Readonly<Record<string, unknown>>,
  expectHosts?: readonly string[],
): Record<string, ElicitationRequest> {
  const entries = Object.entries(inputRequests).map(([key, request]): [string, ElicitationRequest] => {
    const method = isRecord(request) ? request.method : undefined;
    if (isRecord(request) && method === "elicitation/create")
      return [key, parseQuestion(server, request.params, expectHosts)];
    throw new ProtocolError(
      `server "${server}" asks for ${JSON.stringify(method) ?? "nothing"}, which this client does not offer; it answers elicitation/create only`,
      { code: "unsupported_question", server, maybeExecuted: true, data: { key } },
    );
  });
  return Object.fromEntries(entries);
}

/** What is wrong with an answer; empty when it may be sent. */
function answerProblems(question: ElicitationRequest, answer: unknown): readonly AnswerProblem[] {
  const whole = (message: string) => [{ message }];
  if (!isRecord(answer)) return whole('an answer must be { action: "accept" | "decline" | "cancel", content? }');
  const { action, content } = answer;
  if (action === "decline" || action === "cancel") return [];
  if (action !== "accept") return whole(`action must be accept, decline or cancel, got ${shownValue(action)}`);
  if (question.mode === "url") return [];
  if (content !== undefined && !isRecord(content)) return whole("content must be an object");
  return checkAnswer(question.fields, content);
}

const inOneLine = (problems: readonly AnswerProblem[]): string =>
  problems.map(({ field, message }) => (field === undefined ? message : `${field} ${message}`)).join("; ");

/** An answer as the wire carries it: content only where a form was accepted. What is about to be sent is counted. */
function onWire(question: ElicitationRequest, answer: ElicitationAnswer): ElicitResult {
  countAnswer("client", question.mode, answer.action);
  if (answer.action !== "accept") return { action: answer.action };
  return question.mode === "url" ? { action: "accept" } : { action: "accept", content: { ...answer.content } };
}

function invalidAnswer(server: string, problems: readonly AnswerProblem[], key?: string): ProtocolError {
  const problem = `${key === undefined ? "" : `${key}: `}${inOneLine(problems)}`;
  return new ProtocolError(`the answer to the question of server "${server}" cannot be sent: ${problem}`, {
    code: "invalid_answer",
    server,
    maybeExecuted: true, // what the server did before it asked
    data: { problem },
  });
}

/**
 * Checks the answers a driver gave, by key.
 * @throws ProtocolError `invalid_answer`
 */
export function checkAnswers(
  server: string,
  questions: Readonly<Record<string, ElicitationRequest>>,
  answers: Readonly<Record<string, ElicitationAnswer>>,
): Record<string, ElicitResult> {
  const entries = Object.entries(questions).map(([key, question]): [string, ElicitResult] => {
    const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
    const problems = answerProblems(question, answer);
    if (problems.length > 0 || answer === undefined) throw invalidAnswer(server, problems, key);
    return [key, onWire(question, answer)];
  });
  return Object.fromEntries(entries);
}

/**
 * Lets the handler answer one question. An answer that does not fit is asked for again, with what was wrong as `problems`;
 * the question is put to the handler three times at most.
 * @throws ProtocolError `invalid_answer`, ConfigError `handler_failed` when the handler throws
 */
export async function askHandler(
  handler: ElicitationHandler,
  question: ElicitationRequest,
  source: EventSource,
  signal: AbortSignal,
  onAbort: () => TenonError,
): Promise<ElicitResult> {
  let asked = question;
  for (let attempt = 1; ; attempt++) {
    const answer = await withSignal(runHandler(handler, asked, source, signal), signal, onAbort);
    const problems = answerProblems(question, answer);
    if (problems.length === 0) return onWire(question, answer);
    if (attempt === MAX_ATTEMPTS) throw invalidAnswer(source.server, problems);
    asked = { ...question, attempt: attempt + 1, problems };
  }
}

async function runHandler(
  handler: ElicitationHandler,
  question: ElicitationRequest,
  source: EventSource,
  signal: AbortSignal,
): Promise<ElicitationAnswer> {
  try {
    return await handler(question, { ...source, signal });
  } catch (cause) {
    if (cause instanceof TenonError) throw cause;
    const reason = messageOf(cause);
    throw new ConfigError(`the elicitation handler threw on a question of server "${source.server}": ${reason}`, {
      code: "handler_failed",
      server: source.server,
      maybeExecuted: true, // what the server did before it asked
      cause,
    });
  }
}
