// Starts the servers that are measured and reads their memory.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const live = new Set();
process.on("exit", () => {
  for (const child of live) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

/** `node peers/<file> args…`, from the benchmarks' folder, as in production. */
export function start(file, args = [], { stdio = ["ignore", "pipe", "pipe"], nodeArgs = [] } = {}) {
  const child = spawn(process.execPath, [...nodeArgs, `peers/${file}`, ...args], {
    cwd: root,
    stdio,
    env: { ...process.env, NODE_ENV: "production" },
  });
  live.add(child);
  child.once("exit", () => live.delete(child));
  return child;
}

/** Starts an HTTP server; it prints `READY <port>`, or several ports with commas between, once it listens. */
export async function startHttp(file, args, options) {
  const child = start(file, args, options);
  let log = "";
  child.stderr.on("data", (data) => {
    log = (log + data).slice(-20_000);
  });
  const ports = await new Promise((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (data) => {
      out = (out + data).slice(-1_000);
      const ready = /^READY ([\d,]+)$/m.exec(out);
      if (ready) resolve(ready[1].split(",").map(Number));
    });
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code}\n${log}`)));
  });
  return {
    port: ports[0],
    ports,
    pid: child.pid,
    async stop() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await gone;
      clearTimeout(timer);
    },
  };
}

/** Microseconds of processor that all threads of a process have used; NaN where there is no /proc. */
export function cpuUs(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const nanoseconds = (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    return threads.reduce((sum, thread) => sum + nanoseconds(thread), 0) / 1_000;
  } catch {
    return Number.NaN;
  }
}

/** Resident memory of a process in MB; NaN where there is no /proc. */
export function residentMb(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
