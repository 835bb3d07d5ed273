import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createAudit } from "../src/audit/audit-store.ts";
import type { AuditTable } from "../src/audit/audit-table.ts";
import { createMemoryAuditTable } from "../src/audit/memory-audit.ts";
import { createLocalSignals } from "../src/event/signals.ts";
import type { AuditStore } from "../src/index.ts";
import { createMemoryLeases } from "../src/lease/memory-leases.ts";
import { openPostgres } from "../src/postgres.ts";
import { freshCall } from "./audit-suite.ts";
import { onPostgres } from "./postgres.ts";

/** A database that is there, is away, or writes and then loses the connection that its answer should come by. */
type Weather = "there" | "away" | "lost";

function fragile(): { audit: AuditStore; weather(now: Weather): void } {
  const table = createMemoryAuditTable();
  let weather: Weather = "there";
  const inTurn: AuditTable["inTurn"] = async (work) => {
    if (weather === "away") throw new Error("connection refused");
    const done = await table.inTurn(work);
    if (weather === "lost") throw new Error("connection terminated");
    return done;
  };
  const audit = createAudit(
    { ...table, inTurn },
    { leases: createMemoryLeases(), leaseMs: 15_000, signals: createLocalSignals() },
  );
  onTestFinished(() => audit.close());
  return {
    audit,
    weather: (now) => {
      weather = now;
    },
  };
}

const entry = (callId: string) => ({ kind: "intent", callId, pass: 1, server: "s", tool: "t" });
const end = (callId: string) => ({ kind: "outcome", callId, pass: 1, server: "s", tool: "t", outcome: "ok" });
const told = async (audit: AuditStore, callId: string) =>
  (await audit.read({ callId })).map(({ kind, pass, data }) => [kind, pass, data.outcome]);

describe("an audit trail whose database goes away", () => {
  it("refuses intents at once, and keeps outcomes until it is back", async () => {
    const { audit, weather } = fragile();
    const sink = audit.sink();
    const callId = freshCall();
    await sink.intent(entry(callId));
    weather("away");
    await expect(sink.intent(entry(freshCall()))).rejects.toThrow("connection refused");
    let written = false;
    const outcome = sink.outcome(end(callId)).then(() => {
      written = true;
    });
    await sleep(300);
    expect(written).toBe(false);
    weather("there");
    await outcome;
    expect(await told(audit, callId)).toEqual([
      ["intent", 1, undefined],
      ["outcome", 1, "ok"],
    ]);
  });

  it("writes an outcome once although the answer was lost", async () => {
    const { audit, weather } = fragile();
    const sink = audit.sink();
    const callId = freshCall();
    await sink.intent(entry(callId));
    weather("lost");
    const outcome = sink.outcome(end(callId));
    await sleep(50);
    weather("there");
    await outcome;
    expect(await told(audit, callId)).toEqual([
      ["intent", 1, undefined],
      ["outcome", 1, "ok"],
    ]);
    expect(await audit.unfinished()).toEqual([]);
  });

  it("leaves no intent open that was refused although it had been written", async () => {
    const { audit, weather } = fragile();
    const sink = audit.sink();
    const refused = freshCall();
    weather("lost");
    await expect(sink.intent(entry(refused))).rejects.toThrow("connection terminated");
    weather("there");
    expect(await audit.unfinished()).toMatchObject([{ intent: { callId: refused }, alive: false }]);
    const next = freshCall();
    await sink.intent(entry(next));
    expect(await told(audit, refused)).toEqual([
      ["intent", 1, undefined],
      ["outcome", 1, "unknown"],
    ]);
    expect(await audit.unfinished()).toMatchObject([{ intent: { callId: next }, alive: true }]);
    expect((await audit.verify()).intact).toBe(true);
  });

  it("ends with the store, also for outcomes that wait", async () => {
    const { audit, weather } = fragile();
    const sink = audit.sink();
    const callId = freshCall();
    await sink.intent(entry(callId));
    weather("away");
    const outcome = expect(sink.outcome(end(callId))).rejects.toThrow();
    await sleep(20);
    await audit.close();
    await outcome;
  });
});

onPostgres("the audit trail through outages", "audit_outages", (url, schema) => {
  const admin = new pg.Pool({ connectionString: url, max: 1 });
  afterAll(() => admin.end());

  it("loses no outcome and breaks no chain while Postgres ends its connections again and again", async () => {
    const name = `outage_${process.pid}`;
    const named = new URL(url);
    named.searchParams.set("application_name", name);
    await using stores = openPostgres({ url: named.href, schema });
    const sink = stores.audit.sink();
    const ended: string[] = [];
    let going = true;
    const cutting = (async () => {
      for (let cuts = 0; cuts < 8 || ended.length < 10; cuts++) {
        await sleep(400);
        await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [name]);
      }
      going = false;
    })();
    let refused = 0;
    const work = async () => {
      while (going) {
        const callId = freshCall();
        try {
          await sink.intent(entry(callId));
        } catch {
          refused += 1; // not sent
          continue;
        }
        await sink.outcome(end(callId));
        ended.push(callId);
      }
    };
    await Promise.all([cutting, ...Array.from({ length: 5 }, work)]);
    expect(ended.length).toBeGreaterThanOrEqual(10);
    const outcomes = new Map<string, unknown[]>();
    for await (const line of stores.audit.export()) {
      const { kind, callId, data } = JSON.parse(line);
      if (kind !== "intent") outcomes.set(callId, [...(outcomes.get(callId) ?? []), data.outcome]);
    }
    for (const callId of ended) expect(outcomes.get(callId)).toEqual(["ok"]);
    const last = freshCall(); // gives up on what was refused although it had been written
    await sink.intent(entry(last));
    await sink.outcome(end(last));
    expect(await stores.audit.unfinished()).toEqual([]);
    const verdict = await stores.audit.verify();
    expect(verdict.intact).toBe(true);
    if (verdict.intact) expect(verdict.unknown).toBeLessThanOrEqual(refused);
  }, 60_000);
});
