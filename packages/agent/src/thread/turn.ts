import type { Answer, Question } from "../question/open-questions.ts";
import type { StreamAnswer, StreamInput } from "./stream.ts";

/** Asks the person one question. Undefined leaves it open. */
export type Ask = (question: Question, signal: AbortSignal) => Promise<Answer | undefined> | Answer | undefined;

/** What a run has left. */
interface RunLeft {
  readonly questions: readonly Question[];
  /** The message was not sent, since questions came first. */
  readonly unsent: boolean;
  /** Steps may be due although nobody is asked. */
  readonly cut: boolean;
}

/** A message and everything that comes of it: runs of the thread, and between them a person's answers. */
export interface Turn {
  /** What to run next after a run that left this; undefined when nothing is due, or the person left a question open. */
  next(left: RunLeft): Promise<{ readonly input: StreamInput } | undefined>;
  /** Whether the person left a question open. */
  readonly paused: boolean;
}

/** An answer tied to the asking that the person saw. */
function answerTo(question: Question, answer: Answer): StreamAnswer {
  if (question.kind === "elicitation") return { ...answer, id: question.id, elicitationId: question.elicitationId };
  return { ...answer, id: question.id, ...(question.approvalId !== undefined && { approvalId: question.approvalId }) };
}

/** The turn of a message; without one, of what is open on the thread. Questions are asked one after the other. */
export function turnOf(
  message: StreamInput,
  ask: (question: Question) => Promise<Answer | undefined> | Answer | undefined,
): Turn {
  let pending = message;
  let sent = false;
  let paused = false;

  async function answersTo(questions: readonly Question[]): Promise<StreamAnswer[]> {
    const answers: StreamAnswer[] = [];
    for (const question of questions) {
      const answer = await ask(question);
      if (answer === undefined) {
        paused = true;
        break;
      }
      answers.push(answerTo(question, answer));
    }
    return answers; // also when paused: what was answered must not be lost
  }

  return {
    get paused() {
      return paused;
    },
    async next({ questions, unsent, cut }) {
      if (sent && !unsent) pending = undefined;
      sent = false;
      if (paused) return undefined;
      if (questions.length > 0) {
        const answers = await answersTo(questions);
        return answers.length > 0 ? { input: { resume: answers } } : undefined;
      }
      if (pending === undefined && !cut) return undefined;
      sent = true;
      return { input: pending };
    },
  };
}
