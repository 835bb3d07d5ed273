import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Told } from "./agent-words.ts";
import { type Check, checkLedger, checkThreads } from "./checks.ts";
import { processesOf } from "./children.ts";
import type { Sabotage } from "./flags.ts";
import { checkKept } from "./kept-checks.ts";
import { type Course, type Load, startLoad } from "./load.ts";
import { createRandom } from "./random.ts";
import { type FaultKind, scheduleFaults } from "./schedule.ts";
import { createTeller, makeOrders, type StoryKind } from "./stories.ts";
import { openWorld, type WorldOptions } from "./world.ts";
import { startWrecking } from "./wreck.ts";

/** What came of a world that was broken. */
export interface Outcome {
  readonly checks: readonly Check[];
  readonly kills: number;
  readonly effects: number;
  readonly questions: number;
  readonly tasks: number;
}

const PEOPLE = 6;
const DRAIN_MS = 90_000;
/** How often each kind of fault comes. */
const WEIGHTS: Readonly<Record<WorldOptions["database"], Partial<Record<FaultKind, number>>>> = {
  sqlite: { kill: 72, cut: 12, clock: 6, disk: 4, race: 6 },
  postgres: { kill: 72, cut: 14, clock: 6, postgres: 3, race: 6 },
};

/** A safeguard that is switched off is missed sooner where it is needed more often. */
const AIMED: Readonly<Record<Sabotage, Partial<Record<FaultKind, number>>>> = {
  idempotency: { kill: 90, cut: 10 },
  journal: { kill: 1 },
  lease: { kill: 40, race: 60 },
  audit: { kill: 90, cut: 10 },
};
const WANTED: Readonly<Partial<Record<Sabotage, Partial<Record<StoryKind, number>>>>> = {
  journal: { task: 70, long: 30 },
  lease: { later: 100 },
};

/** What agents reported instead of a result, and what tools answered that failed: for whoever reads the run. */
function* trouble(courses: readonly Course[], threads: ReadonlyMap<string, readonly Told[]>): Generator<string> {
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  for (const { errors } of courses) for (const error of errors) count(`an agent failed: ${error.slice(0, 140)}`);
  for (const one of [...threads.values()].flat()) {
    if (one.kind !== "tool" || !one.failed) continue;
    count(`${one.tool} failed: ${one.error?.code ?? one.text.replaceAll(/\d+|reference \w+/g, "…").slice(0, 80)}`);
  }
  for (const [what, times] of counts) yield `  ${times} × ${what}`;
}

/** Builds a small world, breaks it for a while, puts it right, and looks at what is left. */
export async function runOrdeal(
  options: WorldOptions,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const { database, seconds, seed, sabotage } = options;
  const random = createRandom(seed);
  const questions = new Set<string>();
  let load: Load | undefined;
  const world = await openWorld(options, random, (news) => {
    if (news.event === "asked" && news.asked.kind === "question") questions.add(news.asked.id);
    load?.hear(news);
  });
  try {
    const { ledger, crew, slots, relays } = world;
    const orders = makeOrders(random.fork("orders"), Math.max(2_000, seconds * 80));
    await ledger.stock(orders);
    const weights = sabotage === undefined ? { ...WEIGHTS[database] } : { ...AIMED[sabotage] };
    for (const [kind, why] of Object.entries(world.impossible)) {
      delete weights[kind as FaultKind]; // the keys of that type
      say(`skipped: no ${kind} faults: ${why}`);
    }
    const names = [...slots.keys()];
    const runners = names.filter((name) => (world.cluster ? /^worker/ : /^order/).test(name));
    const breakable = {
      processes: sabotage === "journal" ? runners : names,
      relays: [...relays.keys()],
      clocks: names,
      weights,
      // a call is repeated where its answer was lost
      moments: sabotage === "idempotency" ? (["answer"] as const) : undefined,
    };
    const faults = scheduleFaults(random.fork("faults"), seconds, breakable);
    const teller = createTeller(random.fork("stories"), orders, sabotage && WANTED[sabotage]);
    load = startLoad(crew, () => teller.next(), PEOPLE);
    const wreck = startWrecking(faults, { ...world, load }, say);
    await sleep(seconds * 1_000, undefined, { signal });
    load.stop();
    await wreck.done();
    const kills = world.kills();
    say(`faults: ${[...wreck.happened].map(([kind, times]) => `${kind} ${times}`).join(", ")}`);

    await world.allUp();
    const unended = await load.drain(DRAIN_MS);
    signal.throwIfAborted(); // its processes were told as well, and are ending
    say(`${load.courses.length} conversations, ${unended.length} without an end`);
    const threads = new Map<string, readonly Told[]>();
    for (const { story, seen, ended } of load.courses) {
      if (!ended) continue;
      const last = story.kind === "task" ? seen.at(-1) : await crew.ask(story.thread, { do: "read" });
      threads.set(story.thread, last?.told ?? []);
    }
    for (const line of trouble(load.courses, threads)) say(line);
    for (const name of await world.stop()) say(`${name} had to be killed`);

    // a safeguard that is not there cannot be missed
    if (sabotage !== undefined && !existsSync(join(world.folder, "sabotage"))) {
      throw new Error(
        `--sabotage ${sabotage} found nothing to switch off: preload.ts does not fit the statements any more`,
      );
    }
    const evidence = { orders, courses: load.courses, threads, ledger, lines: world.lines };
    const checks = [
      ...(await checkLedger(evidence)),
      ...checkThreads(evidence, unended),
      ...(await checkKept(evidence)),
      { name: "no process ends by itself", problems: world.crashes },
      { name: "the database is whole", problems: await ledger.damage() },
    ];
    const tasks = (await ledger.kept("tenon_tasks")).length;
    const effects = (await ledger.refunds()).length + (await ledger.messages()).length;
    await world.close();
    const left = processesOf(world.folder).map(({ pid, command }) => `${pid} ${command}`);
    checks.push({ name: "no process is left", problems: left });
    return { checks, kills, effects, questions: questions.size, tasks };
  } finally {
    await world.close();
  }
}
