import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { check } from "../lib/check.ts";

const folder = mkdtempSync(join(tmpdir(), "reconciliation-"));
const handle = join(folder, "task.json");
const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const effects = (): string[] =>
  readFileSync(join(folder, "effects"), { encoding: "utf8", flag: "a+" }).split("\n").filter(Boolean);

/** Starts the server on a port, any at first, and waits until it listens. */
async function serve(port: string): Promise<{ url: string; process: ChildProcess }> {
  const server = spawn(process.execPath, ["--import", "tsx", beside("server.ts"), folder, port], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.once("exit", () => server.kill("SIGKILL")); // whatever becomes of this process
  const [url] = await once(createInterface(server.stdout), "line");
  return { url: String(url), process: server };
}

/** Runs a client in a process of its own and waits until that process has ended. */
function client(file: string, url: string): string {
  const args = ["--import", "tsx", beside(file), url, handle];
  const output = execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  console.log(output.trim());
  return output;
}

const first = await serve("0");
client("evening.ts", first.url);
while (effects().length < 3) await sleep(20);
first.process.kill("SIGKILL");
await once(first.process, "exit");
const before = effects();
check("the server is killed in the middle of its work", before.length < 6, true);
console.log(`night: killed after ${before.length} of 6 accounts`);

const second = await serve(new URL(first.url).port);
const morning = client("morning.ts", second.url);
check(
  "the question of the task reaches the client of the morning",
  morning,
  /asked: .*WeChat Pay -6\.00.*Mastercard -10\.00/,
);
check("it hears how far the work is", morning, /6\/6 JCB|5\/6 Mastercard/);
check("it gets the result", morning, /"corrected":true/);
const compared = effects().filter((line) => line.startsWith("compared"));
check("every account was compared", new Set(compared).size, 6);
// the step that ran when the server was killed may have had its effect without being recorded: that one, and no other
check("no finished account was compared again", compared.length <= 7, true);
check(
  "the correction was booked once",
  effects().filter((line) => line.startsWith("corrected")),
  ["corrected 2026-11-29 WeChat Pay -6.00, Mastercard -10.00"],
);

second.process.kill("SIGTERM");
await once(second.process, "exit");
rmSync(folder, { recursive: true });
