import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import type { StdioServerConfig } from "@tenon/client";
import { baseEnvironment, launchOf } from "@tenon/client/internal";
import { codeOf, isRecord, messageOf } from "@tenon/core";
import { type Channel, paramsFor, type Reply, replyOf } from "./channel.ts";
import { parseJson } from "./json.ts";
import { SLOW } from "./protocol.ts";
import { since, type Visit } from "./visit.ts";

/** Characters of what a process wrote that are kept. */
const TAIL = 2_000;
/** Characters of one line of standard output. */
const MAX_LINE = 4 * 1024 * 1024;
/** Lines that are no message, and characters of anything, after which nothing more is read: parsing a flood takes all the time. */
const MAX_NOISE = 1_000;
const MAX_READ = 32 * 1024 * 1024;
/** Milliseconds that a process gets for each step of its end: end of input, SIGTERM, SIGKILL. */
const CLOSE_MS = [150, 150, 100];

interface Life {
  readonly child: ChildProcess;
  readonly began: number;
  /** How it ended, in words; undefined while it runs. */
  ending?: string;
  error?: unknown;
  lastWords: string;
  /** The first lines of standard output that are no message, and how many there are. */
  readonly noise: string[];
  noisy: number;
  /** Whether messages came, and whether an answer did. */
  spoke: boolean;
  heard: boolean;
  readonly pending: Map<number, (message: Readonly<Record<string, unknown>> | undefined) => void>;
}

/** Processes that run, for the case that this one is ended from outside. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) signalAll(child, "SIGKILL");
});

/** A process and those it started: many servers run behind npx, uvx or a shell. */
function signalAll(child: ChildProcess, signal: NodeJS.Signals): void {
  const { pid } = child;
  if (pid === undefined) return;
  try {
    process.kill(process.platform === "win32" ? pid : -pid, signal);
  } catch {
    // it has ended
  }
}

function settleAll(life: Life): void {
  for (const settle of life.pending.values()) settle(undefined);
  life.pending.clear();
}

function start(config: StdioServerConfig): Life {
  const { command, args, cwd, env } = launchOf(config);
  const child = spawn(command, [...args], {
    ...(cwd !== undefined && { cwd }),
    env: { ...baseEnvironment(), ...env },
    stdio: ["pipe", "pipe", "pipe"],
    // a group of its own, to be ended with whatever it started
    detached: process.platform !== "win32",
  });
  running.add(child);
  const life: Life = {
    child,
    began: performance.now(),
    lastWords: "",
    noise: [],
    noisy: 0,
    spoke: false,
    heard: false,
    pending: new Map(),
  };
  const onLine = (line: string) => {
    const message = /^\s*\{/.test(line) ? parseJson(line) : undefined;
    if (!isRecord(message) || message.jsonrpc !== "2.0") {
      if (line.trim() === "") return;
      life.noisy++;
      if (life.noise.length < 20) life.noise.push(line.slice(0, 500));
      return;
    }
    life.spoke = true;
    if ("method" in message || typeof message.id !== "number") return;
    life.heard = true;
    life.pending.get(message.id)?.(message);
    life.pending.delete(message.id);
  };
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let read = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    read += chunk.length;
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) if (life.noisy < MAX_NOISE) onLine(line);
    if (life.noisy >= MAX_NOISE || read > MAX_READ) child.stdout?.pause();
  });
  child.stdout?.on("end", () => onLine(rest));
  child.stderr?.on("data", (chunk: Buffer) => {
    life.lastWords = (life.lastWords + chunk.toString()).slice(-TAIL);
  });
  child.stdin?.on("error", () => undefined); // its end says more
  child.once("error", (error) => {
    running.delete(child);
    life.error = error;
    settleAll(life);
  });
  child.once("exit", (code, signal) => {
    running.delete(child);
    life.ending = signal === null ? `exit code ${code}` : `ended by ${signal}`;
    // what is still in its pipes is read first
    setTimeout(() => settleAll(life), 50);
  });
  return life;
}

async function stop(life: Life): Promise<void> {
  const { child } = life;
  const gone = new Promise<boolean>((resolve) => child.once("close", () => resolve(true)));
  const steps: (() => void)[] = [
    () => child.stdin?.end(),
    () => signalAll(child, "SIGTERM"),
    () => signalAll(child, "SIGKILL"),
  ];
  for (const [index, step] of steps.entries()) {
    if (life.error !== undefined || child.exitCode !== null || child.signalCode !== null) break;
    step();
    await Promise.race([gone, new Promise((resolve) => setTimeout(() => resolve(false), CLOSE_MS[index]))]);
  }
  signalAll(child, "SIGKILL"); // what it started and left behind
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
}

/** The last line of what a process said before it ended. */
function lastLine(text: string): string {
  const lines = text.trim().split("\n");
  // a stack trace comes after what matters
  const said = lines.findLast((line) => /error|cannot|not found|missing|required|denied|usage/i.test(line));
  return (said ?? lines.at(-1) ?? "").trim();
}

/** JSON-RPC with a process that is started for it; started once more where it ends over a question it does not know. */
export function stdioChannel(visit: Visit, config: StdioServerConfig): Channel & { check(): void } {
  let life = start(config);
  let ids = 0;
  let restarts = 0;
  let checked = false;

  const explainStart = (error: unknown): never => {
    const { command, cwd } = launchOf(config);
    if (cwd !== undefined && !existsSync(cwd)) return visit.fail("folder_missing", { evidence: cwd });
    const code = codeOf(error);
    if (code === "ENOENT") return visit.fail("command_not_found", { evidence: command });
    if (code === "EACCES") return visit.fail("command_not_executable", { evidence: command });
    return visit.fail("command_not_executable", { evidence: `${command}: ${messageOf(error)}` });
  };

  const explain = async (method: string): Promise<never> => {
    const { ending, error, lastWords, noise, began, heard, spoke } = life;
    if (error !== undefined) return explainStart(error);
    const [first] = noise;
    if (ending !== undefined) {
      const words = lastLine(lastWords) || noise.at(-1) || "";
      return visit.fail("exited", {
        evidence: `${ending} after ${since(began)} ms${heard ? `, asked for ${method}` : ""}${words === "" ? ", without a word" : `: ${words}`}`,
      });
    }
    if (heard) return visit.fail("list_failed", { evidence: `${method}: no answer, and the process still runs` });
    if (first !== undefined) return visit.fail("stdout_noise", { evidence: `no answer, and on stdout: ${first}` });
    const words = lastLine(lastWords);
    return visit.fail("process_silent", {
      evidence: `${spoke ? "messages and no answer" : "nothing"} on stdout within ${since(began)} ms${words === "" ? "" : `; on stderr: ${words}`}`,
    });
  };

  return {
    async ask(method, params, speech, ms) {
      if (life.ending !== undefined && method === "initialize" && restarts++ === 0) {
        signalAll(life.child, "SIGKILL"); // what it started and left behind
        life = start(config);
      }
      const { child, pending } = life;
      const id = ++ids;
      const isHandshake = method === "initialize" || method === "server/discover";
      const body = { jsonrpc: "2.0", id, method, params: paramsFor(visit, params, speech, isHandshake) };
      const message = await new Promise<Readonly<Record<string, unknown>> | undefined>((resolve) => {
        if (life.ending !== undefined || life.error !== undefined) return resolve(undefined);
        pending.set(id, resolve);
        const signal = visit.deadline.within(ms);
        signal.addEventListener("abort", () => resolve(undefined), { once: true });
        child.stdin?.write(`${JSON.stringify(body)}\n`);
      });
      if (!message) {
        const none: Reply = {
          kind: "none",
          final: life.error !== undefined,
          silent: life.ending === undefined,
          explain: () => explain(method),
        };
        return none;
      }
      visit.facts.latency.start ??= since(life.began);
      return replyOf(message);
    },
    async notify(method) {
      life.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", method })}\n`);
    },
    check() {
      if (checked) return;
      checked = true;
      const [first] = life.noise;
      if (first !== undefined) visit.note("stdout_noise", { evidence: `first such line: ${first}` });
      const { start: ms } = visit.facts.latency;
      if (ms !== undefined && ms > visit.deadline.totalMs * SLOW) {
        visit.note("slow_start", { evidence: `first answer after ${ms} ms` });
      }
    },
    close: () => stop(life),
  };
}
