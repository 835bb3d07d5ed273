import type { InputRequiredResult } from "@modelcontextprotocol/client";
import { isRecord, ProtocolError } from "@tenon/core";
import { textAt } from "../catalog/pages.ts";
import { bounded } from "../connection/time.ts";
import type { ElicitationRequest } from "../types/questions.ts";

/** JSON-RPC code of revision 2025-11-25: first a person has to visit an address. Nothing ran. */
const URL_REQUIRED = -32_042;
/** Tells such a refusal, once it is written as a question, from a question whose answer goes back to the server. */
const MARK = "tenon/refusedUntilVisited";
/** Addresses one refusal may name. */
const MAX_ADDRESSES = 10;
/** Milliseconds until a server that still refuses after the person agreed is asked again, if it does not say before. */
const WAIT_MS = 10_000;
const MAX_KEPT = 1_000;

/**
 * The refusal "a person has to visit an address first" as the questions that the newer revision would have asked, so that
 * handlers and drivers answer both alike. Undefined for any other error. Plain JSON: a driver may keep it.
 */
export function refusalAsQuestions(error: unknown): InputRequiredResult | undefined {
  if (!(error instanceof ProtocolError) || !isRecord(error.data) || error.data.code !== URL_REQUIRED) return undefined;
  const list = isRecord(error.data.data) ? error.data.data.elicitations : undefined;
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_ADDRESSES) return undefined;
  if (!list.every((one) => isRecord(one) && one.mode === "url")) return undefined;
  const requests = list.map((params, index) => [`url${index + 1}`, { method: "elicitation/create", params }]);
  // what the server sent in it is checked like any other question before anybody sees it
  return {
    resultType: "input_required",
    inputRequests: Object.fromEntries(requests),
    _meta: { [MARK]: true },
  } as InputRequiredResult;
}

/** Whether questions were made of a refusal: their request is sent again as it was. */
export function isRefusal({ _meta }: InputRequiredResult): boolean {
  return _meta?.[MARK] === true;
}

/** Lets a refused request go on. @throws ProtocolError `declined` unless every address was agreed to */
export function checkConsent(server: string, what: string, answers: Readonly<Record<string, unknown>>): void {
  for (const answer of Object.values(answers)) {
    const action = isRecord(answer) ? answer.action : undefined;
    if (action === "accept") continue;
    const how = action === "decline" ? "the person declined" : "the question was cancelled";
    throw new ProtocolError(
      `${what} on server "${server}" needs a person to visit an address first, and ${how}; nothing ran`,
      { code: "declined", server, maybeExecuted: false, data: { action } },
    );
  }
}

/** The ids by which a server tells that a person is done with these questions. */
export function idsOf(questions: Readonly<Record<string, ElicitationRequest>>): string[] {
  return Object.values(questions).flatMap((question) =>
    question.mode === "url" && question.elicitationId !== undefined ? [question.elicitationId] : [],
  );
}

/** Visits that servers said are over (`notifications/elicitation/complete`), and who waits for one. */
export class Visits {
  readonly #done = new Set<string>();
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Notes what a server says; `params` is unchecked. */
  complete(server: string, params: unknown): void {
    const id = isRecord(params) ? textAt(params, "elicitationId") : undefined;
    if (id === undefined || id.length > 1_000) return;
    const key = JSON.stringify([server, id]);
    const [oldest] = this.#done;
    if (this.#done.size >= MAX_KEPT && oldest !== undefined) this.#done.delete(oldest);
    this.#done.add(key);
    for (const go of this.#waiting.get(key) ?? []) go();
  }

  /** Resolves when the server said that all of these are over, or after a while: it need not say so. */
  async over(server: string, ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#one(JSON.stringify([server, id]))));
  }

  async #one(key: string): Promise<void> {
    if (this.#done.delete(key)) return;
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    let go = () => {};
    const told = new Promise<void>((resolve) => {
      go = resolve;
    });
    waiting.add(go);
    await bounded(told, WAIT_MS);
    this.#done.delete(key);
    waiting.delete(go);
    if (waiting.size === 0) this.#waiting.delete(key);
  }
}
