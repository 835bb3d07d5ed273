import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";

// one of several processes that want the same name: writes a line per turn that only a holder may write
const [kind, where = "", schema = "", log = "", task = "turns"] = process.argv.slice(2);
const stores = kind === "sqlite" ? openSqlite({ path: where }) : openPostgres({ url: where, schema });
const holder = `process ${process.pid}`;

if (task === "die") {
  const { state } = await stores.leases.acquire("dies", holder, Number(log));
  console.log(state);
  await sleep(60_000); // killed long before
}

let turns = 0;
while (turns < 15) {
  const { state, lease } = await stores.leases.acquire("turns", holder, 60_000);
  if (state === "taken") {
    await sleep(2);
    continue;
  }
  const lines = readFileSync(log, "utf8").split("\n").length - 1;
  await sleep(1); // whoever else is in here now reads the same number
  appendFileSync(log, `${lines} ${lease.fence} ${process.pid}\n`);
  turns += 1;
  await stores.leases.release(lease);
}
await stores.close();
