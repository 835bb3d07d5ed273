import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Starts a file of this folder as a process of its own; what it prints comes through `stdout`. */
export function start(file: string, ...args: string[]): ChildProcess {
  return spawn(
    process.execPath,
    ["--conditions=@tenon/source", "--import", "tsx", fileURLToPath(new URL(file, import.meta.url)), ...args],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
}

/** Starts the same number of processes at once and returns the lines each printed. */
export async function race(processes: number, file: string, ...args: string[]): Promise<string[][]> {
  const run = (): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const child = start(file, ...args);
      let out = "";
      child.stdout?.on("data", (chunk) => {
        out += chunk;
      });
      child.on("error", reject);
      child.on("close", (code) =>
        code === 0 ? resolve(out.split("\n").filter(Boolean)) : reject(new Error(`${code}`)),
      );
    });
  return Promise.all(Array.from({ length: processes }, run));
}
