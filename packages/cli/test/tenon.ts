import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import "../../../test/built.ts";

/** What is published. */
export const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));
/** How long a started server may take on a busy machine. */
const START_MS = 30_000;

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Where {
  /** Current directory of the command; the default data directory lies in it. */
  readonly cwd: string;
  readonly env?: Record<string, string>;
}

function start(args: readonly string[], { cwd, env = {} }: Where) {
  const { TENON_DATA_DIR: _data, TENON_DATABASE_URL: _url, TENON_DATABASE_SCHEMA: _schema, ...rest } = process.env;
  return spawn(process.execPath, [main, ...args], {
    cwd,
    env: { ...rest, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Runs the command line as a process of its own, without a terminal. */
export async function tenon(args: readonly string[], where: Where): Promise<Outcome> {
  const child = start(args, where);
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (part) => {
    stdout += part;
  });
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

/** A command that runs until it is stopped. */
export interface Running {
  /** The line of JSON it prints when it is ready. */
  readonly ready: Record<string, unknown>;
  readonly pid: number;
  /** What the process has printed so far. */
  readonly output: { stdout: string; stderr: string };
  /** When it ends by itself, its exit code. */
  readonly ended: Promise<number | null>;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a command with `--json` and waits until it is ready. */
export async function running(args: readonly string[], where: Where): Promise<Running> {
  const child = start([...args, "--json"], where);
  const output = { stdout: "", stderr: "" };
  const ended = once(child, "close").then(([code]) => code as number | null);
  child.stderr.on("data", (part) => {
    output.stderr += part;
  });
  const ready = await new Promise<Record<string, unknown>>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no start: ${output.stderr}`)), START_MS);
    child.stdout.on("data", (part) => {
      output.stdout += part;
      if (!output.stdout.includes("\n")) return;
      clearTimeout(timer);
      resolve(JSON.parse(output.stdout));
    });
    void ended.then(() => reject(new Error(`ended: ${output.stderr}`)));
  });
  return {
    ready,
    pid: child.pid ?? 0,
    output,
    ended,
    stop(signal = "SIGTERM") {
      child.kill(signal);
      return ended;
    },
  };
}

export interface RunningServer extends Running {
  readonly issuer: string;
}

/** Starts `tenon auth-server` on a free port and waits until it listens. */
export async function authServer(args: readonly string[], where: Where): Promise<RunningServer> {
  const server = await running(["auth-server", "--port", "0", ...args], where);
  return { ...server, issuer: String(server.ready.issuer) };
}
