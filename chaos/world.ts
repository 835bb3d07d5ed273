import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Said, Told } from "./agent-words.ts";
import { type Check, checkLedger, checkThreads } from "./checks.ts";
import { createChildren, processesOf, type Slot } from "./children.ts";
import { clocks } from "./clock.ts";
import { createCrew } from "./crew.ts";
import { mountDisk } from "./disk.ts";
import { sqliteLedger } from "./ledger.ts";
import { startLoad } from "./load.ts";
import type { Programs } from "./programs.ts";
import { createRandom } from "./random.ts";
import { openRelay, type Relay } from "./relay.ts";
import { type FaultKind, scheduleFaults } from "./schedule.ts";
import { createTeller, makeOrders } from "./stories.ts";
import { startWrecking } from "./wreck.ts";

export interface WorldOptions {
  readonly database: "sqlite" | "postgres";
  readonly seconds: number;
  readonly seed: number;
  readonly sabotage?: string | undefined;
  /** Bundled programs. */
  readonly programs: Programs;
  /** Fault kinds that this machine cannot do, with the reason. */
  readonly impossible: Readonly<Partial<Record<FaultKind, string>>>;
}

export interface Outcome {
  readonly checks: readonly Check[];
  readonly kills: number;
  readonly effects: number;
  readonly questions: number;
  readonly tasks: number;
}

const PEOPLE = 6;
const UP_MS = 60_000;
const DRAIN_MS = 90_000;
const AGENTS = ["agent-1", "agent-2", "agent-3"] as const;

/** Starts a small world, breaks it for a while, puts it right, and looks at what is left. */
export async function runWorld(
  options: WorldOptions,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const { database, seconds, seed, programs, sabotage } = options;
  const random = createRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), `tenon-chaos-${database}-`));
  const data = join(folder, "data");
  mkdirSync(data);
  const disk = mountDisk(data);
  const impossible: Partial<Record<FaultKind, string>> = { ...options.impossible };
  if (!disk) impossible.disk ??= "no mount namespace";
  const made = clocks(folder);
  if ("missing" in made) impossible.clock = made.missing;
  const clockOf = (name: string) => ("make" in made ? made.make(name) : undefined);

  const children = createChildren(folder);
  const slots = new Map<string, Slot>();
  const relays = new Map<string, Relay>();
  const pauses = random.fork("pauses");
  const questions = new Set<string>();
  const heard = (said: Extract<Said, { event: "asked" }>): void => {
    if (said.asked.kind === "question") questions.add(said.asked.id);
  };
  const crew = createCrew(() => AGENTS.flatMap((name) => slots.get(name) ?? []), random.fork("crew"), heard);
  const env: Record<string, string> = sabotage === undefined ? {} : { TENON_CHAOS_SABOTAGE: sabotage };
  const preload = ["--import", programs.preload];

  function startServer(name: string, which: "order" | "notification"): Slot {
    const slot = children.start({
      name,
      args: [...preload, programs.desk, "serve", which, "--port", "0", "--data", data],
      env,
      clock: clockOf(name),
      pauseMs: () => pauses.between(20, 500),
    });
    slots.set(name, slot);
    return slot;
  }
  const portsOf =
    (...names: string[]) =>
    (): number[] =>
      names.flatMap((name) => (slots.get(name)?.isUp() ? (slots.get(name)?.port() ?? []) : []));

  const closing: (() => Promise<unknown>)[] = [];
  try {
    await startServer("order-1", "order").up(UP_MS); // the first one makes the tables
    startServer("order-2", "order");
    startServer("notification", "notification");
    const ledger = sqliteLedger(data);
    const orders = makeOrders(random.fork("orders"), Math.max(400, seconds * 40));
    await ledger.stock(orders);
    for (const name of AGENTS) {
      const order = await openRelay(portsOf("order-1", "order-2"));
      const notification = await openRelay(portsOf("notification"));
      closing.push(order.close, notification.close);
      relays.set(name, order);
      relays.set(`${name} notification`, notification);
      const at = ({ port }: Relay): string => `http://127.0.0.1:${port}/mcp`;
      const slot = children.start({
        name,
        args: [...preload, programs.agent],
        env: {
          ...env,
          TENON_CHAOS_AGENT: JSON.stringify({ data, urls: { order: at(order), notification: at(notification) } }),
        },
        clock: clockOf(name),
        pauseMs: () => pauses.between(20, 500),
        onMessage: (message) => crew.hear(name, message as unknown as Said), // the program's own words
        onGone: () => crew.gone(name),
      });
      slots.set(name, slot);
    }
    const allUp = () => Promise.all([...slots.values()].map((slot) => slot.up(UP_MS)));
    await allUp();

    const weights: Partial<Record<FaultKind, number>> = { kill: 70, cut: 12, clock: 6, disk: 4, race: 8 };
    for (const [kind, why] of Object.entries(impossible)) {
      delete weights[kind as FaultKind]; // the key's own type
      say(`skipped: ${kind}: ${why}`);
    }
    const faults = scheduleFaults(random.fork("faults"), seconds, {
      processes: [...slots.keys()],
      relays: [...relays.keys()],
      clocks: [...slots.keys()],
      weights,
    });
    const teller = createTeller(random.fork("stories"), orders);
    const load = startLoad(crew, () => teller.next(), PEOPLE);
    const wreck = startWrecking(faults, { slots, relays, load, disk }, say);
    await sleep(seconds * 1_000, undefined, { signal });
    load.stop();
    await wreck.done();
    const { kills } = children;
    say(`faults: ${[...wreck.happened].map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
    await allUp();
    const unended = await load.drain(DRAIN_MS);
    say(`${load.courses.length} conversations, ${unended.length} without an end`);
    const threads = new Map<string, readonly Told[]>();
    for (const { story, ended } of load.courses) {
      if (ended) threads.set(story.thread, (await crew.ask(story.thread, { do: "read" })).told);
    }
    const codes = new Map<string, number>();
    for (const { errors } of load.courses)
      for (const error of errors) codes.set(error.slice(0, 160), (codes.get(error.slice(0, 160)) ?? 0) + 1);
    for (const told of threads.values())
      for (const one of told)
        if (one.kind === "tool" && one.failed) {
          const code = `told: ${one.error?.code ?? JSON.stringify(one.structured)} ${one.text.slice(0, 80)}`;
          codes.set(code, (codes.get(code) ?? 0) + 1);
        }
    for (const [code, count] of codes) say(`  ${count} × ${code}`);
    for (const slot of slots.values()) {
      const how = await slot.stop();
      if (how !== "ended") say(`${slot.name} ${how}`);
    }
    const evidence = { orders, courses: load.courses, threads, ledger };
    const checks = [
      ...(await checkLedger(evidence)),
      ...checkThreads(evidence, unended),
      { name: "no process ends by itself", problems: [...children.crashes] },
      { name: "the files are whole", problems: await ledger.damage() },
    ];
    for (const close of closing.splice(0)) await close();
    const left = processesOf(folder).map(({ pid, command }) => `${pid} ${command}`);
    checks.push({ name: "no process is left", problems: left });
    const effects = (await ledger.refunds()).length + (await ledger.messages()).length;
    return { checks, kills, effects, questions: questions.size, tasks: 0 };
  } finally {
    for (const slot of slots.values()) slot.kill();
    await Promise.all([...slots.values()].map((slot) => slot.stop()));
    for (const close of closing) await close();
    disk?.unmount();
    if (!process.env.TENON_CHAOS_KEEP) rmSync(folder, { recursive: true, force: true });
  }
}
