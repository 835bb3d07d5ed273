/** The approval flow: `approvals.ts <folder> <port>`. What it has asked and written down lies in the folder and survives a restart. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { createServer, openStateKeys } from "@tenon/server";
import { openSqlite } from "@tenon/store/sqlite";
import Database from "better-sqlite3";
import { z } from "zod";
import { say } from "../lib/locale.ts";
import { caller } from "./contract.ts";

const DECISIONS = ["approved", "rejected", "unanswered"] as const;
type Decision = (typeof DECISIONS)[number];

const [folder = ".", port = "0"] = process.argv.slice(2);
const records = new Database(join(folder, "approvals.sqlite"));
records.exec(
  "create table if not exists approvals (key text primary key, user_id text, subject text, amount real, grounds text, decision text)",
);
const insert = records.prepare("insert or ignore into approvals values (?, ?, ?, ?, ?, ?)");
const numberOf = records.prepare<[string], { rowid: number }>("select rowid from approvals where key = ?");

await using stores = openSqlite({ path: join(folder, "calls.sqlite") });
await using server = createServer({
  name: "approvals",
  version: "1.0.0",
  logLevel: "error",
  store: stores,
  stateKeys: openStateKeys(join(folder, "state-keys")),
  contract: { schema: caller }, // its keys are in TENON_CONTRACT_KEYS
});

/** Every call is written down with what it said of who asks, so that the example can look at it. */
server.use((request, next) => {
  const { method, meta } = request;
  if (method !== "tools/call") return next();
  const line = { server: "approval", method, context: meta["dev.tenon/context"] };
  appendFileSync(join(folder, "told"), `${JSON.stringify(line)}\n`);
  return next();
});

server.tool(
  "request_approval",
  {
    description: "Asks a manager whether an amount may be paid, and writes down what was decided.",
    input: z.object({ subject: z.string(), amount: z.number().positive(), grounds: z.string() }),
    output: z.object({ decision: z.enum(DECISIONS), number: z.int() }),
    idempotent: true,
  },
  async ({ subject, amount, grounds }, ctx) => {
    const answer = await ctx.elicit(
      say(
        `批准“${subject}”，金额 ${amount} 元？依据：${grounds}`,
        `Approve ${amount} for "${subject}"? Grounds: ${grounds}`,
      ),
      { approve: say("批准", "approve"), reject: say("驳回", "reject") },
    );
    const decision: Decision =
      answer.action !== "accept" ? "unanswered" : answer.data === "approve" ? "approved" : "rejected";
    // a process that dies after the insert runs this again, with the same key
    const number = await ctx.step("record", (key) => {
      insert.run(key, ctx.context.user_id, subject, amount, grounds, decision);
      return numberOf.get(key)?.rowid ?? 0;
    });
    return { decision, number };
  },
);

const { url } = await server.listen({ port: Number(port) });
console.log(url);
await new Promise((resolve) => process.once("SIGTERM", resolve));
records.close();
