import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, readdirSync, readFileSync, readlinkSync, type WriteStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRecord } from "@tenon/core";
import type { Clock } from "./clock.ts";

/** In the environment of everything a run starts, with the run's folder as its value. */
export const MARK = "TENON_CHAOS";

/** What a process is started with. */
export interface Program {
  readonly name: string;
  /** What `node` is told. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock | undefined;
  /** What it prints when it is ready, where it says so in no other way. */
  readonly readyLine?: string;
  /** Milliseconds until it is started again after its death. */
  pauseMs(): number;
  onMessage?(message: Record<string, unknown>): void;
  /** Hears what it writes, line by line. */
  onLine?(line: string): void;
  /** Called at each death, also at one that we brought about. */
  onGone?(): void;
}

/** A process that is started again whenever it dies, for as long as the run lasts. */
export interface Slot {
  readonly name: string;
  readonly clock: Clock | undefined;
  /** Whether it has said that it is ready. */
  isUp(): boolean;
  /** Where it listens, where it said so. */
  port(): number | undefined;
  send(message: object): boolean;
  /** `kill -9`. False when there was nothing to kill. */
  kill(): boolean;
  /** Waits until it is ready. @throws Error after `ms` */
  up(ms: number): Promise<void>;
  /** Asks it to end, and ends it when it does not. Resolves to how it ended. */
  stop(): Promise<"ended" | "had to be killed" | "was not there">;
}

/** How long a process has to end by itself. */
const STOP_MS = 8_000;

export interface Children {
  start(program: Program): Slot;
  readonly kills: number;
  /**
   * Processes that ended although nobody ended them, and what they said last. One that refuses to start, since what it needs is not
   * there, is none: it is started again.
   */
  readonly crashes: readonly string[];
}

/** @param folder of the run: logs go there */
export function createChildren(folder: string): Children {
  const crashes: string[] = [];
  let kills = 0;

  function start(program: Program): Slot {
    const { name, clock } = program;
    const log: WriteStream = createWriteStream(join(folder, `${name}.log`), { flags: "a" });
    let child: ChildProcess | undefined;
    let ready = false;
    let port: number | undefined;
    let stopping = false;
    let killed = false;
    let words = "";

    function run(): void {
      ready = false;
      killed = false;
      words = "";
      const own = spawn(process.execPath, program.args, {
        stdio: ["ignore", "pipe", "pipe", "ipc"],
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...program.env, ...clock?.env, [MARK]: folder },
      });
      child = own;
      for (const stream of [own.stdout, own.stderr]) {
        let rest = "";
        stream?.setEncoding("utf8").on("data", (text: string) => {
          const lines = (rest + text).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) program.onLine?.(line);
          words = (words + text).slice(-2_000);
          if (program.readyLine !== undefined && words.includes(program.readyLine)) ready = true;
          log.write(text);
        });
      }
      own.on("message", (message) => {
        if (!isRecord(message)) return;
        if (typeof message.url === "string") port = Number(new URL(message.url).port);
        if (typeof message.url === "string" || message.ready === true) ready = true;
        program.onMessage?.(message);
      });
      own.on("error", () => undefined); // the end says all
      own.once("exit", (code, signal) => {
        if (child !== own) return;
        const ran = ready;
        child = undefined;
        ready = false;
        log.write(`-- ${name} ended: ${signal ?? code}\n`);
        program.onGone?.();
        if (stopping) return;
        if (ran && !killed) crashes.push(`${name} ended by itself with ${signal ?? code}: ${words.trim().slice(-500)}`);
        setTimeout(() => stopping || run(), program.pauseMs()).unref();
      });
    }
    run();

    return {
      name,
      clock,
      isUp: () => ready,
      port: () => port,
      send: (message) => child?.connected === true && child.send(message, () => undefined),
      kill() {
        if (!child?.kill("SIGKILL")) return false;
        killed = true;
        kills += 1;
        return true;
      },
      async up(ms) {
        const deadline = performance.now() + ms;
        while (!ready) {
          if (performance.now() > deadline)
            throw new Error(`${name} was not ready after ${ms} ms: ${words.slice(-500)}`);
          await sleep(20);
        }
      },
      async stop() {
        stopping = true;
        const own = child;
        if (!own) return "was not there";
        const gone = new Promise<void>((resolve) => own.once("exit", () => resolve()));
        own.kill("SIGTERM");
        const polite = await Promise.race([gone.then(() => true), sleep(STOP_MS, false)]);
        if (!polite) own.kill("SIGKILL");
        await gone;
        log.end();
        return polite ? "ended" : "had to be killed";
      },
    };
  }

  return {
    start,
    get kills() {
      return kills;
    },
    crashes,
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // it ended meanwhile
  }
}

/** Processes of this run that are still there, whoever started them: by their environment, their folder or their command. */
export function processesOf(folder: string): { pid: number; command: string }[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) return [];
    const command = read(`/proc/${entry}/cmdline`).replaceAll("\0", " ");
    if (command === "") return []; // a zombie, or none any more
    let cwd = "";
    try {
      cwd = readlinkSync(`/proc/${entry}/cwd`);
    } catch {
      // it ended meanwhile
    }
    const ours = read(`/proc/${entry}/environ`).includes(`${MARK}=${folder}`) || cwd.startsWith(folder);
    return ours ? [{ pid: Number(entry), command: command.trim() }] : [];
  });
}
