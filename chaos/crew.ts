import { setTimeout as sleep } from "node:timers/promises";
import { deserializeError, type TenonError } from "@tenon/core";
import type { Request, Said, ThreadStatus, Told } from "./agent-words.ts";
import type { Slot } from "./children.ts";
import type { Random } from "./random.ts";

/** What an agent process made of a request. */
export interface Done {
  readonly status: ThreadStatus;
  readonly told: readonly Told[];
}

/** The process died, or lost its voice, before it answered: whether it did the work is not known. */
export class AgentGoneError extends Error {}

/** One of them, whichever. */
type Without<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;
type Work = Without<Request, "id" | "thread">;

/** What an agent tells while it works. */
export type News = Extract<Said, { event: "asked" | "accepted" }>;

/** The agent processes, and who asks them. */
export interface Crew {
  /** Called by the process for each of its messages. */
  hear(said: Said): void;
  /** The process died: nothing it was asked will be answered. */
  gone(agent: string): void;
  /**
   * Has one of the processes work on a thread, whichever.
   * @throws AgentGoneError, or what the agent failed with
   */
  ask(thread: string, work: Work): Promise<Done>;
  /** The same of two processes at the same time. */
  askTwo(thread: string, work: Work): Promise<PromiseSettledResult<Done>[]>;
}

/** An agent that says nothing for so long is taken for dead. */
const SILENT_MS = 120_000;

/** @param slots read anew for each request: the processes are started after their crew */
export function createCrew(slots: () => readonly Slot[], random: Random, onNews: (news: News) => void): Crew {
  interface Open {
    readonly agent: string;
    resolve(done: Done): void;
    reject(error: Error | TenonError): void;
  }
  const open = new Map<number, Open>();
  let ids = 0;

  function askOf(agent: Slot, thread: string, work: Work): Promise<Done> {
    ids += 1;
    const id = ids;
    return new Promise<Done>((resolve, reject) => {
      const timer = setTimeout(() => reject(new AgentGoneError(`${agent.name} is silent`)), SILENT_MS);
      const end = (): void => {
        clearTimeout(timer);
        open.delete(id);
      };
      open.set(id, {
        agent: agent.name,
        resolve(done) {
          end();
          resolve(done);
        },
        reject(error) {
          end();
          reject(error);
        },
      });
      if (!agent.send({ id, thread, ...work })) open.get(id)?.reject(new AgentGoneError(`${agent.name} is gone`));
    });
  }

  async function ready(count: number): Promise<Slot[]> {
    for (;;) {
      const up = slots().filter((slot) => slot.isUp());
      if (up.length >= count) return up;
      await sleep(25);
    }
  }

  return {
    hear(said) {
      if (said.event === "asked" || said.event === "accepted") onNews(said);
      else if (said.event === "done") open.get(said.id)?.resolve({ status: said.status, told: said.told });
      else if (said.event === "failed") open.get(said.id)?.reject(deserializeError(said.error));
    },
    gone(agent) {
      for (const one of [...open.values()]) if (one.agent === agent) one.reject(new AgentGoneError(`${agent} died`));
    },
    async ask(thread, work) {
      return askOf(random.pick(await ready(1)), thread, work);
    },
    async askTwo(thread, work) {
      const [first, second] = await ready(2);
      return Promise.allSettled(
        [first, second].map((slot) => (slot ? askOf(slot, thread, work) : Promise.reject(new Error("no agent")))),
      );
    },
  };
}
