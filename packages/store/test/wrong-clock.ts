import { setTimeout as sleep } from "node:timers/promises";
import { openSqlite } from "../src/sqlite.ts";

// a process whose time of day is wrong by some hours: holds a lease, a claim and a task, or says what it gets of them
const [path = "", hours = "", leaseMs = "", task = ""] = process.argv.slice(2);
const Now = Date;
const ahead = Number(hours) * 3_600_000;
globalThis.Date = class extends Now {
  static override now(): number {
    return Now.now() + ahead;
  }
  constructor(...given: [] | [number]) {
    super(...(given.length === 0 ? ([Now.now() + ahead] as [number]) : given));
  }
} as DateConstructor; // whatever Date is made from is passed on as it came

const stores = openSqlite({ path, leaseMs: Number(leaseMs) });
const { state } = await stores.leases.acquire("thread", `process ${process.pid}`, Number(leaseMs));
const claim = await stores.outcomes.claim({ key: "call", digest: "d", ttlMs: 60_000 });
if (claim.state === "yours") await stores.outcomes.begin(claim.lease);
const run = await stores.tasks.take(["server"], `process ${process.pid}`);
console.log(JSON.stringify({ lease: state, claim: claim.state, task: run?.task.id ?? "none" }));
if (task === "hold") await sleep(60_000); // killed long before
await stores.close();
