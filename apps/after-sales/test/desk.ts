import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import "../../../test/built.ts";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from "vitest";
import { DESK_URL, dropDesk, forgetRefunds, placeVariables, rows } from "./desk-database.ts";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const ENTRY = fileURLToPath(new URL("../dist/main.js", import.meta.url));
/** A place in source code, which no person should ever see. */
const STACK = /\n\s+at .*:\d+:\d+/;
const WAIT_MS = 30_000;

/** Registers what to clean up: `onTestFinished`, or a list for what several tests share. */
type Later = (work: () => Promise<void>) => void;

/** A data directory of its own for a test; nothing that works on it may outlive the test. */
export function dataDirectory(later: Later = onTestFinished): string {
  const path = mkdtempSync(join(tmpdir(), "tenon-desk-"));
  later(async () => {
    for (const { pid } of processesOn(path)) process.kill(pid, "SIGKILL");
    await until(() => processesOn(path).length === 0, "the last process to end");
    dropDesk(path);
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

/** All processes of this machine, zombies aside: from /proc where there is one, since tests ask often. */
function processes(): { pid: number; command: string }[] {
  if (existsSync("/proc/self/cmdline")) {
    return readdirSync("/proc").flatMap((entry) => {
      if (!/^\d+$/.test(entry)) return [];
      try {
        const command = readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ");
        return command === "" ? [] : [{ pid: Number(entry), command }];
      } catch {
        return []; // it ended meanwhile
      }
    });
  }
  const listing = execFileSync("ps", ["-eo", "pid=,stat=,args="], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  return listing.split("\n").flatMap((line) => {
    const [, pid, stat = "", command = ""] = /^\s*(\d+) (\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || stat.startsWith("Z") ? [] : [{ pid: Number(pid), command }];
  });
}

/** Processes whose command line names this data directory: the chat and its servers, orphans included. */
export function processesOn(data: string): { pid: number; command: string }[] {
  return processes().filter(({ command }) => command.includes(data));
}

/** The process of one of the servers the chat started. */
export function serverProcess(data: string, name: "order" | "notification"): number {
  const found = processesOn(data).find(({ command }) => command.includes(`serve ${name}`));
  if (!found) throw new Error(`no ${name} server runs on ${data}`);
  return found.pid;
}

/** Waits for something to become true, and says what did not. */
export async function until(check: () => boolean | Promise<boolean>, what: string, ms = WAIT_MS): Promise<void> {
  const deadline = Date.now() + ms;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`gave up waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export interface ProgramOptions {
  /** Further flags. */
  args?: readonly string[];
  env?: Record<string, string>;
}

export interface Ended {
  stdout: string;
  stderr: string;
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The data directory a program is told to work on. */
function dataOf(args: readonly string[]): string | undefined {
  const at = args.indexOf("--data");
  return at < 0 ? undefined : args[at + 1];
}

/** The running program: what it wrote so far, and how to talk to it. */
export class Program {
  stdout = "";
  stderr = "";
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  /** Where the next `sees` begins to look. */
  #seen = 0;

  constructor(
    [program = "", ...args]: readonly string[],
    env: Record<string, string> = {},
    later: Later = onTestFinished,
  ) {
    const child = spawn(program, args, {
      cwd: ROOT,
      // a key or a setting of the developer's must not change a test
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...placeVariables(dataOf(args)), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    child.stdin?.on("error", () => undefined); // it ended before it read everything
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve) => {
      child.once("close", (code, signal) => resolve({ stdout: this.stdout, stderr: this.stderr, code, signal }));
    });
    later(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await this.ended;
      expect(this.stdout, "a stack trace on standard output").not.toMatch(STACK);
      expect(this.stderr, "a stack trace on standard error").not.toMatch(STACK);
      expect(this.stderr, "a warning of Node").not.toMatch(/Warning:/);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  say(...lines: readonly string[]): this {
    this.#child.stdin?.write(lines.map((line) => `${line}\n`).join(""));
    return this;
  }

  /** Keys, at a terminal. */
  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  /** The end of the input, as Ctrl-D makes it. */
  hangUp(): this {
    this.#child.stdin?.end();
    return this;
  }

  /** Closes our end of its output, as a program does that has read enough. */
  stopReading(): this {
    this.#child.stdout?.destroy();
    return this;
  }

  kill(signal: NodeJS.Signals): this {
    this.#child.kill(signal);
    return this;
  }

  /** Waits for text after what was waited for before, and returns everything up to its end. */
  async sees(text: string | RegExp, ms = WAIT_MS): Promise<string> {
    const deadline = Date.now() + ms;
    for (;;) {
      const fresh = this.stdout.slice(this.#seen);
      const at = typeof text === "string" ? fresh.indexOf(text) : fresh.search(text);
      if (at >= 0) {
        const length = typeof text === "string" ? text.length : (text.exec(fresh)?.[0].length ?? 0);
        this.#seen += at + length;
        return fresh.slice(0, at + length);
      }
      if (Date.now() > deadline || this.#child.exitCode !== null || this.#child.signalCode !== null) {
        const end = await Promise.race([this.ended, new Promise((resolve) => setTimeout(resolve, 100))]);
        if (end && this.stdout.slice(this.#seen) !== fresh) continue; // its last words arrived late
        throw new Error(`did not see ${text}; since then:\n${fresh}\n--- stderr\n${this.stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

const FREE_PORTS = ["--order-port", "0", "--notification-port", "0"];

/** Starts `chat` on free ports; by default with both servers in the same process, which is quicker. */
export function openChat(data: string, { args = ["--all"], env }: ProgramOptions = {}, later?: Later): Program {
  return new Program([process.execPath, ENTRY, "chat", "--data", data, ...FREE_PORTS, ...args], env, later);
}

/** One chat for all tests of a `describe`: starting it takes longer than most conversations. Every test begins unrefunded. */
export function sharedChat(options?: ProgramOptions): {
  data: string;
  told(...lines: readonly string[]): Promise<string>;
} {
  let chat: Program | undefined;
  let turns = 0;
  const shared = {
    data: "",
    /** Says these lines and returns all that the desk wrote about them. */
    async told(...lines: readonly string[]): Promise<string> {
      turns += 1;
      const mark = `/no-such-command-${turns}`; // echoed, then answered: by then everything before it is done
      chat?.say(...lines, mark);
      const text = await chat?.sees(mark);
      await chat?.sees(mark);
      return text ?? "";
    },
  };
  const cleanUp: (() => Promise<void>)[] = [];
  beforeAll(() => {
    shared.data = dataDirectory((work) => void cleanUp.unshift(work));
    chat = openChat(shared.data, options, (work) => void cleanUp.unshift(work));
  });
  afterAll(async () => {
    const problems: unknown[] = [];
    for (const work of cleanUp) await work().catch((problem) => problems.push(problem)); // what began last goes first
    if (problems.length > 0) throw problems[0];
  });
  beforeEach(() => forgetRefunds(shared.data));
  return shared;
}

/** One whole conversation, piped in like a file; fails unless the program ends well. */
export async function talk(data: string, lines: readonly string[], options?: ProgramOptions): Promise<string> {
  const { code, stdout, stderr } = await openChat(data, options)
    .say(...lines)
    .hangUp().ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** Runs the program to its end with any arguments. */
export function run(args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  return new Program([process.execPath, ENTRY, ...args], env).hangUp().ended;
}

/** Refunded orders, in the order they were made. */
export function refunds(data: string): string[] {
  const written = DESK_URL === undefined ? "rowid" : "ctid";
  return rows<{ order_id: string }>(data, `select order_id from refunds order by created_at, ${written}`).map(
    (row) => row.order_id,
  );
}

export interface RefundRow {
  order_id: string;
  amount: number;
  reason: string;
  caller_id: string;
}

export function refundRows(data: string): RefundRow[] {
  return rows(data, "select order_id, amount, reason, caller_id from refunds order by order_id");
}

export interface OutboxRow {
  phone: string;
  content: string;
  status: string;
  caller_id: string;
}

export function outbox(data: string): OutboxRow[] {
  return rows(data, "select phone, content, status, caller_id from sms_outbox order by id");
}
