/** A stream of questions, and what becomes of it while the replicas of the knowledge base are replaced one after the other. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Desk } from "./desk.ts";

/** An answer of the stream: in which conversation, and by which replica and version. */
export interface Answered {
  readonly thread: string;
  readonly replica: string;
  readonly version: string;
}

/** Questions that are asked without a pause until `end`. */
export interface Stream {
  readonly answers: readonly Answered[];
  readonly failures: readonly unknown[];
  /** Waits until each conversation was answered once more from now on. */
  round(): Promise<void>;
  end(): Promise<void>;
}

/** Asks one question after the other in each of the conversations, three at a time. */
export function streamOfQuestions(desk: Desk, threads: readonly string[], question: string): Stream {
  const answers: Answered[] = [];
  const failures: unknown[] = [];
  let ends = false;
  async function ask(thread: string): Promise<void> {
    try {
      const { found } = await desk.ask(thread, { user_id: "lin", question });
      const [replica = "", version = ""] = found?.answered_by.split(" ") ?? [];
      answers.push({ thread, replica, version });
    } catch (error) {
      failures.push(error);
    }
  }
  async function work(mine: readonly string[]): Promise<void> {
    while (!ends) {
      for (const thread of mine) await ask(thread);
      await sleep(10);
    }
  }
  const workers = [0, 1, 2].map((n) => work(threads.filter((_, i) => i % 3 === n)));
  return {
    answers,
    failures,
    async round() {
      const before = answers.length;
      const since = () => new Set(answers.slice(before).map(({ thread }) => thread));
      for (let waited = 0; since().size < threads.length && failures.length === 0 && waited < 10_000; waited += 20) {
        await sleep(20);
      }
    },
    async end() {
      ends = true;
      await Promise.all(workers);
    },
  };
}
