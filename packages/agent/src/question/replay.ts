import type { ElicitationAnswer, ElicitationRequest } from "@tenon/client";
import { digest } from "@tenon/core/internal";

/** A question that ended the call it was asked in. */
export interface PushedQuestion {
  readonly question: ElicitationRequest;
  /** How many answers the server had taken before it. */
  readonly at: number;
}

/** What one call has to remember when a server that asks inside the call is to be answered later. */
export interface Replaying {
  /** The call is sent, for the first time or again. */
  begin(): void;
  /** The answer to what the server asks now, when exactly this was asked and answered at this place before. */
  pushed(question: ElicitationRequest): ElicitationAnswer | undefined;
  /** The question that ended this sending. */
  asked(): PushedQuestion | undefined;
  answered(pushed: PushedQuestion, answer: ElicitationAnswer): void;
}

/** Answers a repeated call's questions in their order; from the first that differs from what a person saw, nothing counts. */
export function replaying(): Replaying {
  const known: Array<{ readonly print: string; readonly answer: ElicitationAnswer }> = [];
  let taken = 0;
  let asked: PushedQuestion | undefined;
  return {
    begin() {
      taken = 0;
      asked = undefined;
    },
    pushed(question) {
      const next = known[taken];
      if (asked === undefined && next?.print === digest(question)) {
        taken += 1;
        return next.answer;
      }
      asked ??= { question, at: taken };
      return undefined;
    },
    asked: () => asked,
    answered({ question, at }, answer) {
      known.length = at;
      known.push({ print: digest(question), answer });
    },
  };
}
