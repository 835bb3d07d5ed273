import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { StdioServerConfig } from "../types.ts";
import { launchOf } from "./launch.ts";
import { bounded } from "./time.ts";

const TAIL = 2_000;
const PASSED_ON = ["LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

function baseEnvironment(): Record<string, string> {
  const env = getDefaultEnvironment();
  for (const key of PASSED_ON) {
    const value = process.env[key];
    if (value !== undefined) env[key] = value;
  }
  return env;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function kill(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it ended in between
  }
}

/** A server as a child process whose `close` ends within 1.5 s: end of input, SIGTERM, SIGKILL. */
export class ChildTransport extends StdioClientTransport {
  #tail = "";

  constructor(config: StdioServerConfig) {
    const { command, args, cwd, env } = launchOf(config);
    super({
      command,
      args: [...args],
      ...(cwd !== undefined && { cwd }),
      env: { ...baseEnvironment(), ...env },
      stderr: "pipe",
    });
    this.stderr?.on("data", (chunk: Buffer) => {
      this.#tail = (this.#tail + chunk.toString()).slice(-TAIL);
      process.stderr.write(chunk);
    });
  }

  /** The last lines the process wrote to its standard error. */
  get lastWords(): string {
    return this.#tail.trim();
  }

  override async close(): Promise<void> {
    const pid = this.pid;
    const closing = super.close();
    if (pid === null) return closing;
    await bounded(closing, 600);
    if (isAlive(pid)) {
      kill(pid, "SIGTERM");
      await bounded(closing, 500);
    }
    if (isAlive(pid)) {
      kill(pid, "SIGKILL");
      await bounded(closing, 300);
    }
  }
}
