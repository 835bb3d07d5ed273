/** Starts the servers as processes of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { child } from "../lib/child.ts";

/** A server that runs. */
export interface Running {
  readonly url: string;
  /** Ends it, as an operator does: it answers what it has begun and goes. */
  stop(): Promise<void>;
}

/** Starts a server of this folder with the keys of its contract, and waits until it listens. */
export async function start(file: string, keys: string, ...args: string[]): Promise<Running> {
  const { command, args: script } = child(import.meta, file);
  const server: ChildProcess = spawn(command, [...script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TENON_CONTRACT_KEYS: keys },
  });
  process.once("exit", () => server.kill("SIGKILL")); // whatever becomes of this process
  const lines = createInterface(server.stdout as NonNullable<ChildProcess["stdout"]>); // it is a pipe
  const [url] = await Promise.race([
    once(lines, "line"),
    once(server, "exit").then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`))),
  ]);
  return {
    url: String(url),
    async stop() {
      const gone = once(server, "exit");
      server.kill("SIGTERM");
      await gone;
    },
  };
}
