import type { Answer, ApprovalDecision, Question } from "@tenon/agent";
import type { ElicitationAnswer } from "@tenon/client";
import { type Asking, approveInTerminal, askQuestion } from "@tenon/client/terminal";
import { cleanText } from "@tenon/core";

/** Arguments the system fills in: nobody edits them one by one. */
const FIXED = ["caller_id"];

/**
 * Asks a person one question of a run, one line a part.
 * @returns undefined when the input ends or the person leaves: the question stays open
 */
export async function askPerson(
  question: Question,
  asking: Asking & { serverTitle(server: string): string },
): Promise<Answer | undefined> {
  if (question.error !== undefined) {
    asking.lines.write(`${asking.texts.bad(cleanText(question.error).replace(/\.$/, ""))}\n`);
  }
  if (question.kind === "approval") {
    const decisions: ApprovalDecision[] = [];
    for (const [i, action] of question.actions.entries()) {
      const place = { n: i + 1, total: question.actions.length, fixed: FIXED };
      const decision = await approveInTerminal(action, asking, place);
      if (decision === undefined) return undefined;
      decisions.push(decision);
    }
    return { decisions };
  }
  const answers: Record<string, ElicitationAnswer> = {};
  for (const [key, request] of Object.entries(question.questions)) {
    const answer = await askQuestion(request, { ...asking, server: asking.serverTitle(question.server) });
    if (answer === undefined) return undefined;
    answers[key] = answer;
  }
  return { answers };
}
