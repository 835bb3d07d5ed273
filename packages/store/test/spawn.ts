import { type ChildProcess, spawn } from "node:child_process";
import { program } from "../../../test/programs.ts";

/** Starts a file of this folder as a process of its own; what it prints comes through `stdout`. */
export async function start(file: string, ...args: string[]): Promise<ChildProcess> {
  const made = await program(file, import.meta.url);
  return spawn(process.execPath, [made, ...args], { stdio: ["ignore", "pipe", "inherit"] });
}

/** Starts the same number of processes at once and returns the lines each printed. */
export async function race(processes: number, file: string, ...args: string[]): Promise<string[][]> {
  const run = async (): Promise<string[]> => {
    const child = await start(file, ...args);
    return new Promise((resolve, reject) => {
      let out = "";
      child.stdout?.on("data", (chunk) => {
        out += chunk;
      });
      child.on("error", reject);
      child.on("close", (code) =>
        code === 0 ? resolve(out.split("\n").filter(Boolean)) : reject(new Error(`${code}`)),
      );
    });
  };
  return Promise.all(Array.from({ length: processes }, run));
}
