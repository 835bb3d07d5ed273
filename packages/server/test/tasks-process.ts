import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqlite } from "@tenon/store/sqlite";
import { z } from "zod";
import { createServer } from "../src/index.ts";

// one of several processes that share tasks: `tasks-process.ts <serve|lazy|work> <folder>`, a database in TASKS_…
const [how, folder = "."] = process.argv.slice(2);
const leaseMs = 600;

async function openStores() {
  const { TASKS_DATABASE_URL: url, TASKS_SCHEMA: schema } = process.env;
  if (url === undefined || schema === undefined) return openSqlite({ path: `${folder}/tasks.db`, leaseMs });
  const { openPostgres } = await import("@tenon/store/postgres");
  return openPostgres({ url, schema, leaseMs });
}

const note = (line: string): void => appendFileSync(`${folder}/effects`, `${line}\n`);
const tell = (line: string): void => void process.stdout.write(`${line}\n`);

const server = createServer({
  name: "crashing",
  version: "1.0.0",
  logLevel: "error",
  store: await openStores(),
  ...(how === "lazy" && { tasks: { concurrency: 0 } }),
});
server.tool(
  "batch",
  { input: z.object({ n: z.number(), pauseMs: z.number() }), task: "required" },
  async (args, ctx) => {
    for (let i = 1; i <= args.n; i++) {
      await ctx.step(`order ${i}`, (key) => note(`${i} ${key}`));
      tell(`done ${i}`);
      await sleep(args.pauseMs, undefined, { signal: ctx.signal });
    }
    const sure = await ctx.elicit("Send them?", z.boolean());
    await ctx.step("send", () => note("send"));
    return { sent: sure.action, by: process.pid };
  },
);
server.tool("poison", { task: "required" }, () => {
  note("poison");
  process.kill(process.pid, "SIGKILL");
});
server.tool("hang", { task: "required" }, async (_, ctx) => {
  await ctx.step("first", () => note("first"));
  tell("hanging");
  ctx.signal.addEventListener("abort", () => tell("aborted"));
  await new Promise(() => undefined);
});
server.tool("changed", {}, (_, ctx) => {
  ctx.notify.toolsChanged();
  return "told";
});

if (how === "work") {
  const working = await server.work({ concurrency: 2 });
  tell("ready");
  process.once("SIGTERM", () => void working.close());
  await working.done;
  await server.close();
  process.exit(0);
}
const { url } = await server.listen({ port: 0 });
tell(`ready ${url}`);
process.once("SIGTERM", () => void server.close().then(() => process.exit(0)));
