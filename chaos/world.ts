import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Said } from "./agent-words.ts";
import { createChildren, type Slot } from "./children.ts";
import { type Clock, clocks } from "./clock.ts";
import { type Cluster, createCluster } from "./cluster.ts";
import { type Crew, createCrew, type News } from "./crew.ts";
import { type Disk, mountDisk } from "./disk.ts";
import type { DatabaseName, Sabotage } from "./flags.ts";
import { type Ledger, postgresLedger, sqliteLedger } from "./ledger.ts";
import type { Programs } from "./programs.ts";
import type { Random } from "./random.ts";
import { openRelay, type Relay } from "./relay.ts";
import type { FaultKind } from "./schedule.ts";

export interface WorldOptions {
  readonly database: DatabaseName;
  readonly seconds: number;
  readonly seed: number;
  readonly sabotage?: Sabotage | undefined;
  readonly programs: Programs;
  /** Kinds of faults that this machine cannot do, with the reason. */
  readonly impossible: Readonly<Partial<Record<FaultKind, string>>>;
}

/** A small world: servers and agents in processes of their own, and what stands between them. */
export interface World {
  readonly folder: string;
  readonly slots: ReadonlyMap<string, Slot>;
  /** Those of an agent to the order server are called like the agent: what is killed at a moment watches its own. */
  readonly relays: ReadonlyMap<string, Relay>;
  readonly crew: Crew;
  readonly ledger: Ledger;
  readonly disk: Disk | undefined;
  readonly cluster: Cluster | undefined;
  readonly impossible: Readonly<Partial<Record<FaultKind, string>>>;
  readonly kills: () => number;
  readonly crashes: readonly string[];
  /** What servers and workers wrote to their logs, in the order in which it came. */
  readonly lines: readonly string[];
  /** Waits until every process is ready. */
  allUp(): Promise<void>;
  /** Stops the processes; the database stays. Returns those that would not end by themselves. */
  stop(): Promise<readonly string[]>;
  /** Takes all of it away. */
  close(): Promise<void>;
}

const UP_MS = 60_000;
const AGENTS = ["agent-1", "agent-2", "agent-3"] as const;
const SCHEMA = "after_sales";

/** @param onNews hears of each question that a person is asked, and of each task that was accepted */
export async function openWorld(
  { database, programs, sabotage, ...options }: WorldOptions,
  random: Random,
  onNews: (news: News) => void,
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), `tenon-chaos-${database}-`));
  const data = join(folder, "data");
  mkdirSync(data);
  const impossible: Partial<Record<FaultKind, string>> = { ...options.impossible };
  const closing: (() => unknown)[] = [];
  const slots = new Map<string, Slot>();
  const relays = new Map<string, Relay>();
  const children = createChildren(folder);
  const pauses = random.fork("pauses");
  const lines: string[] = [];

  const made = clocks(folder);
  if ("missing" in made) impossible.clock = made.missing;
  const clockOf = (name: string): Clock | undefined => ("make" in made ? made.make(name) : undefined);

  const relayTo = async (name: string, ports: () => readonly number[]): Promise<Relay> => {
    const relay = await openRelay(ports);
    closing.push(() => relay.close());
    relays.set(name, relay);
    return relay;
  };
  const portsOf =
    (...names: string[]) =>
    (): number[] =>
      names.flatMap((name) => (slots.get(name)?.isUp() ? (slots.get(name)?.port() ?? []) : []));

  function start(
    name: string,
    args: readonly string[],
    more: Parameters<typeof children.start>[0] | object = {},
  ): Slot {
    const slot = children.start({
      name,
      clock: clockOf(name),
      pauseMs: () => pauses.between(20, 500),
      onLine: (line: string) => void lines.push(line),
      ...more,
      args: ["--import", programs.preload, ...args],
      env: { ...(sabotage !== undefined && { TENON_CHAOS_SABOTAGE: sabotage }), ...("env" in more ? more.env : {}) },
    });
    slots.set(name, slot);
    return slot;
  }

  const stop = async (): Promise<readonly string[]> => {
    const ended = await Promise.all([...slots.values()].map(async (slot) => [slot.name, await slot.stop()] as const));
    return ended.filter(([, how]) => how === "had to be killed").map(([name]) => name);
  };
  async function close(): Promise<void> {
    for (const slot of slots.values()) slot.kill();
    await stop();
    for (const one of closing.splice(0).reverse()) await one();
    if (process.env.TENON_CHAOS_KEEP === undefined) rmSync(folder, { recursive: true, force: true });
  }

  try {
    let disk: Disk | undefined;
    let cluster: Cluster | undefined;
    /** What a process of each kind is told about its database. */
    const url: { servers?: string; agents?: string } = {};
    if (database === "sqlite") {
      disk = mountDisk(data);
      if (disk) closing.push(disk.unmount);
    } else {
      const created = await createCluster(join(folder, "postgres"));
      if ("missing" in created) throw new Error(created.missing);
      cluster = created;
      closing.push(() => created.stop("immediate").catch(() => undefined));
      url.servers = cluster.url((await relayTo("servers to postgres", () => [created.port])).port);
      url.agents = cluster.url((await relayTo("agents to postgres", () => [created.port])).port);
    }
    const where = ["--data", data, ...(url.servers === undefined ? [] : ["--database", url.servers])];
    // on SQLite servers run tasks themselves; on Postgres they leave it to workers
    const serve = (which: string): string[] => [
      ...[programs.desk, "serve", which, "--port", "0", ...where],
      ...(cluster ? ["--no-worker"] : []),
    ];

    await start("order-1", serve("order")).up(UP_MS); // the first one makes the tables
    start("order-2", serve("order"));
    start("notification", serve("notification"));
    for (const name of cluster ? ["worker-1", "worker-2"] : []) {
      start(name, [programs.desk, "worker", ...where], { readyLine: "worker is ready" });
    }
    const ledger = cluster ? postgresLedger(cluster.url(), SCHEMA) : sqliteLedger(data);

    const crew = createCrew(() => AGENTS.flatMap((name) => slots.get(name) ?? []), random.fork("crew"), onNews);
    for (const name of AGENTS) {
      const order = await relayTo(name, portsOf("order-1", "order-2"));
      const notification = await relayTo(`${name} to notification`, portsOf("notification"));
      const at = ({ port }: Relay): string => `http://127.0.0.1:${port}/mcp`;
      const told = {
        place: { directory: data, url: url.agents },
        urls: { order: at(order), notification: at(notification) },
      };
      start(name, [programs.agent], {
        env: { TENON_CHAOS_AGENT: JSON.stringify(told) },
        onMessage: (message: unknown) => crew.hear(message as Said), // the program's own words
        onGone: () => crew.gone(name),
      });
    }
    const allUp = async (): Promise<void> =>
      void (await Promise.all([...slots.values()].map((slot) => slot.up(UP_MS))));
    await allUp();
    return {
      folder,
      slots,
      relays,
      crew,
      ledger,
      disk,
      cluster,
      impossible,
      kills: () => children.kills,
      crashes: children.crashes,
      lines,
      allUp,
      stop,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
