import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable } from "@tenon/core";
import { LeaseLostError } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";

// one of several processes that run tasks, killed and stopped at any moment: writes down what it was told
const [kind, where = "", schema = "", server = "", log = "", lease = ""] = process.argv.slice(2);
const leaseMs = Number(lease);
const stores = kind === "sqlite" ? openSqlite({ path: where, leaseMs }) : openPostgres({ url: where, schema, leaseMs });
const say = (what: string, id: string, fence: number, more: unknown = "") =>
  appendFileSync(log, `${JSON.stringify({ what, id, fence, more })}\n`);

for (;;) {
  const run = await stores.tasks.take([server], `process ${process.pid}`);
  if (!run) {
    await sleep(20);
    continue;
  }
  const { id } = run.task;
  say("took", id, run.fence, [...run.steps.keys()]);
  const beat = setInterval(() => void run.renew().catch(() => undefined), leaseMs / 4);
  try {
    for (let step = 0; step < 2; step++) {
      if (run.steps.has(`s${step}`)) continue;
      await sleep(Math.random() * 10);
      await run.record(`s${step}`, [process.pid]);
      say("recorded", id, run.fence, `s${step}`);
    }
    await run.finish({ status: "completed", result: run.fence });
    say("finished", id, run.fence);
  } catch (error) {
    if (error instanceof LeaseLostError) say("lost", id, run.fence);
    else if (isRetryable(error)) await run.again(0);
    else throw error;
  } finally {
    clearInterval(beat);
  }
}
