import { writeSync } from "node:fs";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";

// one of several processes that write to one trail; says of each call that its intent, and then its outcome, is durable
const [kind, where = "", schema = "", calls = "endless", inFlight = "4", lease = "15000"] = process.argv.slice(2);
const leaseMs = Number(lease);
const stores = kind === "sqlite" ? openSqlite({ path: where, leaseMs }) : openPostgres({ url: where, schema, leaseMs });
const { audit } = stores;
const say = (line: string) => writeSync(1, `${line}\n`); // at once: the process may be killed right after
const limit = calls === "endless" ? Number.POSITIVE_INFINITY : Number(calls);
let next = 0;

async function work(): Promise<void> {
  while (next < limit) {
    const callId = `${process.pid}-${next++}`;
    const { pass, hash } = await audit.append({ kind: "intent", callId, data: { server: "s", tool: "t" } });
    say(`intent ${callId} ${hash}`);
    const end = await audit.append({ kind: "outcome", callId, pass, data: { server: "s", tool: "t", outcome: "ok" } });
    say(`outcome ${callId} ${end.hash}`);
  }
}
await Promise.all(Array.from({ length: Number(inFlight) }, work));
await stores.close();
