/** Everything that runs while the example does, and the file that says where the knowledge base is. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { child } from "../lib/child.ts";

/** A server that runs in a process of its own. */
export interface Running {
  readonly url: string;
  /** Ends it, as an operator does: it answers what it has begun, and goes. */
  stop(): Promise<void>;
}

/** Starts a server of this folder with the keys of its contract, and waits until it listens. */
export async function start(file: string, keys: string, ...args: string[]): Promise<Running> {
  const { command, args: script } = child(import.meta, file);
  const server = spawn(command, [...script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TENON_CONTRACT_KEYS: keys },
  }) as ChildProcess & { stdout: NonNullable<ChildProcess["stdout"]> }; // it is a pipe
  process.once("exit", () => server.kill("SIGKILL")); // whatever becomes of this process
  const exit = once(server, "exit");
  const failed = exit.then(([code]) => Promise.reject(new Error(`${file} ended with ${code} before it listened`)));
  const [url] = await Promise.race([once(createInterface(server.stdout), "line"), failed]);
  failed.catch(() => {}); // from now on it may end
  return {
    url: String(url),
    async stop() {
      server.kill("SIGTERM");
      await exit;
    },
  };
}

/** Writes down where each replica is, by its name; all at once, so that nobody reads half a file. */
export function writeRegistry(file: string, replicas: Readonly<Record<string, string>>): void {
  const knowledge = Object.entries(replicas).map(([id, url]) => ({ id, url }));
  writeFileSync(`${file}.new`, JSON.stringify({ knowledge }));
  renameSync(`${file}.new`, file);
}

/** Waits until something is so, ten seconds at most. */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  for (let waited = 0; !isSo(); waited += 20) {
    if (waited > 10_000) throw new Error(`After ten seconds still not: ${what}`);
    await sleep(20);
  }
}
