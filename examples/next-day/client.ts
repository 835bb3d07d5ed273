import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { check } from "../lib/check.ts";

const folder = mkdtempSync(join(tmpdir(), "next-day-"));
const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** Runs the desk in a process of its own, so many hours from now, and waits until that process has ended. */
function desk(hours: number, threadId: string, words: { text?: string; reason?: string }) {
  const args = ["--import", "tsx", "--import", beside("clock.ts"), beside("desk.ts"), folder, threadId];
  const line = execFileSync(process.execPath, [...args, words.text ?? "", words.reason ?? ""], {
    env: { ...process.env, CLOCK_HOURS: String(hours) },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 30_000,
  });
  console.log(line.trim());
  return JSON.parse(line) as { now: string; status: string; asked: string[]; reply: string }; // what desk.ts prints
}
const refunds = (): string[] =>
  readFileSync(join(folder, "refunds"), { encoding: "utf8", flag: "a+" }).split("\n").filter(Boolean);

const evening = desk(0, "customer-7", { text: "ORD-002" });
check("in the evening the refund is approved, the server asks, and nobody answers", evening.asked, [
  "approval",
  "Refund 700 for ORD-002: why?",
]);
check("the process ends with the question open", evening.status, "paused");
check("and nothing is refunded", refunds(), []);

const morning = desk(20, "customer-7", { reason: "damaged" });
check("the next day another process asks only what is open", morning.asked, ["Refund 700 for ORD-002: why?"]);
check("and finishes the call", morning.reply, "ORD-002 refunded: damaged");
check("with one refund", refunds(), ["ORD-002 700"]);
check("a day has passed for it", Date.parse(morning.now) - Date.parse(evening.now) > 19 * 3_600_000, true);

desk(0, "customer-8", { text: "ORD-003" });
const later = desk(5 * 24, "customer-8", { reason: "damaged" });
check(
  "after five days the server has given its question up, so it is asked again before the answer counts",
  later.asked,
  [
    "Refund 700 for ORD-003: why?",
    "Refund 700 for ORD-003: why?",
    "The server no longer accepts an answer to the earlier question; please answer again.",
  ],
);
check("and then it is refunded, once", refunds(), ["ORD-002 700", "ORD-003 700"]);

rmSync(folder, { recursive: true });
