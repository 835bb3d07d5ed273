import type { Slot } from "./children.ts";
import type { Cluster } from "./cluster.ts";
import type { Disk } from "./disk.ts";
import type { Load } from "./load.ts";
import type { Relay } from "./relay.ts";
import type { Fault, FaultKind } from "./schedule.ts";

/** What can be broken. */
export interface Victims {
  readonly slots: ReadonlyMap<string, Slot>;
  /** By name; those between an agent and the servers are called like the agent. */
  readonly relays: ReadonlyMap<string, Relay>;
  readonly load: Load;
  readonly disk?: Disk | undefined;
  readonly cluster?: Cluster | undefined;
}

/** Who waits for a moment that does not come acts all the same. */
const PATIENCE_MS = 1_500;
/** A start may take so long, in looks of 20 ms, before it is killed in the middle of it. */
const START_TRIES = 200;

/**
 * Carries out the faults, each at its time.
 * @param say hears of each as it happens
 * @returns waits until everything that broke is whole again
 */
export function startWrecking(
  faults: readonly Fault[],
  victims: Victims,
  say: (line: string) => void,
): { done(): Promise<void>; readonly happened: ReadonlyMap<FaultKind, number> } {
  const { slots, relays, load, disk, cluster } = victims;
  const happened = new Map<FaultKind, number>();
  const pending = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  /** A full disk, a stopped Postgres and a wrong clock are put right before the next of their kind. */
  const busy = new Map<string, Promise<void>>();
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

  /** Waits for bytes on one of the relays, not for long. */
  function moment(which: readonly Relay[], kind: "request" | "answer", act: () => void): Promise<void> {
    return new Promise((resolve) => {
      const forget: (() => void)[] = [];
      let acted = false;
      const once = (): void => {
        if (acted) return;
        acted = true;
        clearTimeout(timer);
        for (const one of forget) one();
        act();
        resolve();
      };
      const timer = setTimeout(once, PATIENCE_MS);
      for (const relay of which) forget.push(relay.next(kind, once));
    });
  }

  async function kill({ target, moment: when }: Extract<Fault, { kind: "kill" }>): Promise<void> {
    const slot = slots.get(target);
    if (!slot) throw new Error(`there is no process ${target}`);
    const strike = async (): Promise<void> => {
      // one that is being started again is given the time to come up: where all are always starting nothing is tried out
      for (let tries = 0; !slot.isUp() && tries < START_TRIES; tries += 1) await pause(20);
      slot.kill();
    };
    if (when === "now") return strike();
    const own = [...relays].flatMap(([name, relay]) => (name === target ? [relay] : []));
    const watched = own.length > 0 ? own : [...relays.values()];
    let struck: Promise<void> | undefined;
    await moment(watched, when, () => {
      // an agent dies before the bytes go on; a server while it works on them
      struck = own.length > 0 || when === "answer" ? strike() : pause(4).then(strike);
    });
    await struck;
  }

  async function carryOut(fault: Fault): Promise<void> {
    switch (fault.kind) {
      case "kill":
        return kill(fault);
      case "cut": {
        const relay = relays.get(fault.target);
        if (!relay) throw new Error(`there is no relay ${fault.target}`);
        if (fault.moment === "now") return relay.cut();
        return moment([relay], "answer", relay.cut);
      }
      case "clock": {
        const clock = slots.get(fault.target)?.clock;
        clock?.set(fault.jumpMs);
        await pause(fault.forMs);
        return clock?.set(0);
      }
      case "disk":
        disk?.fill();
        await pause(fault.forMs);
        return disk?.heal();
      case "race":
        return load.raceNext();
      case "postgres":
        await cluster?.stop(fault.how);
        await pause(fault.forMs);
        return cluster?.start();
    }
  }

  /** Faults of one kind that last take turns. */
  async function inTurn(fault: Fault): Promise<void> {
    const lane = fault.kind === "clock" ? `clock ${fault.target}` : fault.kind;
    const before = busy.get(lane);
    const work = (async () => {
      if (fault.kind !== "kill" && fault.kind !== "cut") await before;
      await carryOut(fault);
      happened.set(fault.kind, (happened.get(fault.kind) ?? 0) + 1);
    })();
    busy.set(
      lane,
      work.catch(() => undefined),
    );
    await work;
  }

  for (const fault of faults) {
    const timer = setTimeout(() => {
      timers.delete(timer);
      const { atMs, kind, ...about } = fault;
      say(`${(atMs / 1_000).toFixed(1).padStart(6)} s  ${kind} ${Object.values(about).join(" ")}`);
      const work = inTurn(fault).catch((error: unknown) =>
        say(`         ${kind} could not be carried out: ${String(error)}`),
      );
      pending.add(work);
      work.finally(() => pending.delete(work));
    }, fault.atMs);
    timers.add(timer);
  }
  return {
    happened,
    async done() {
      for (const timer of timers) clearTimeout(timer);
      while (pending.size > 0) await Promise.all(pending);
    },
  };
}
