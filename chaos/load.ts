import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "@tenon/core";
import { AgentGoneError, type Crew, type Done, type News } from "./crew.ts";
import type { Story } from "./stories.ts";

/** How a story went. */
export interface Course {
  readonly story: Story;
  /** What the person was told, each time an agent said so. */
  readonly seen: Done[];
  /** Codes of the errors that agents reported instead. */
  readonly errors: string[];
  /** The task it began, as soon as it was seen. */
  task?: string;
  ended: boolean;
}

/** People who talk with the agents at the same time. */
export interface Load {
  readonly courses: readonly Course[];
  /** Takes down what an agent tells while it works. */
  hear(news: News): void;
  /** The next turn that goes on with an open question is given to two agents at once. */
  raceNext(): void;
  /** Begins no more stories; those that left a question open come back now. */
  stop(): void;
  /** Waits until all stories have ended, at most so long. Returns those that have not. */
  drain(ms: number): Promise<readonly Course[]>;
}

const AGAIN_MS = 250;

/**
 * @param next the next story, while there are any
 * @param people how many talk at the same time; one who left a question open does not count
 */
export function startLoad(crew: Crew, next: () => Story | undefined, people: number): Load {
  const courses: Course[] = [];
  const stopped = new AbortController();
  const given = new AbortController();
  let race = false;
  const away = new Set<Promise<void>>();

  async function turn(course: Course, plan: Story["plan"]): Promise<Done | undefined> {
    const { story } = course;
    const work =
      story.kind === "task"
        ? ({
            do: "task",
            orders: story.orders.map(({ id }) => id),
            tag: story.tag,
            ...(course.task !== undefined && { task: course.task }),
          } as const)
        : ({ do: "turn", message: story.message, plan } as const);
    try {
      // two that send the same message are two that ask; two that go on with what is open must be as one
      if (!race || course.seen.length === 0) return await crew.ask(story.thread, work);
      race = false;
      const both = await crew.askTwo(story.thread, work);
      for (const one of both) {
        if (one.status === "fulfilled") course.seen.push(one.value);
        else note(course, one.reason);
      }
      return undefined; // look again, alone
    } catch (error) {
      note(course, error);
      return undefined;
    }
  }
  function note({ errors }: Course, error: unknown): void {
    if (!(error instanceof AgentGoneError)) errors.push(`${codeOf(error) ?? "?"}: ${String(error).slice(0, 300)}`);
  }

  /** Until the thread is at its end, or waits for a person who left. */
  async function until(course: Course, plan: Story["plan"], status: Done["status"]): Promise<boolean> {
    while (!given.signal.aborted) {
      const done = await turn(course, plan);
      if (done) {
        course.seen.push(done);
        if (done.status === status || done.status === "done") return done.status === "done";
      }
      await sleep(AGAIN_MS);
    }
    return false;
  }

  async function comeBack(course: Course, later: NonNullable<Story["later"]>): Promise<void> {
    await sleep(later.afterMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    course.ended = await until(course, later.plan, "done");
  }

  async function person(): Promise<void> {
    while (!stopped.signal.aborted) {
      const story = next();
      if (!story) {
        await sleep(AGAIN_MS);
        continue;
      }
      const course: Course = { story, seen: [], errors: [], ended: false };
      courses.push(course);
      course.ended = await until(course, story.plan, story.later ? "paused" : "done");
      if (!course.ended && story.later) {
        const back = comeBack(course, story.later);
        away.add(back);
        back.finally(() => away.delete(back));
      }
    }
  }
  const people_ = Array.from({ length: people }, person);

  return {
    courses,
    hear(news) {
      if (news.event !== "accepted") return;
      const course = courses.find(({ story }) => story.thread === news.thread);
      if (course) course.task = news.task;
    },
    raceNext() {
      race = true;
    },
    stop: () => stopped.abort(),
    async drain(ms) {
      stopped.abort();
      const limit = setTimeout(() => given.abort(), ms);
      await Promise.race([
        Promise.all(people_).then(() => Promise.all(away)),
        new Promise<void>((resolve) => given.signal.addEventListener("abort", () => resolve(), { once: true })),
      ]);
      clearTimeout(limit);
      given.abort();
      return courses.filter(({ ended }) => !ended);
    },
  };
}
