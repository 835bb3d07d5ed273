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

interface Where {
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

export interface RunningServer {
  readonly issuer: string;
  /** What the process has printed so far. */
  readonly output: { stdout: string; stderr: string };
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts `tenon auth-server` on a free port and waits until it listens. */
export async function authServer(args: readonly string[], where: Where): Promise<RunningServer> {
  const child = start(["auth-server", "--port", "0", "--json", ...args], where);
  const output = { stdout: "", stderr: "" };
  const ended = once(child, "close");
  child.stderr.on("data", (part) => {
    output.stderr += part;
  });
  const issuer = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no start: ${output.stderr}`)), START_MS);
    child.stdout.on("data", (part) => {
      output.stdout += part;
      if (!output.stdout.includes("\n")) return;
      clearTimeout(timer);
      resolve(JSON.parse(output.stdout).issuer);
    });
    void ended.then(() => reject(new Error(`ended: ${output.stderr}`)));
  });
  return {
    issuer,
    output,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      const [code] = await ended;
      return code;
    },
  };
}
