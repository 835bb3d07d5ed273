import { setTimeout as sleep } from "node:timers/promises";
import { digest } from "@tenon/core/internal";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuditRecord, AuditStore, Stores } from "../src/index.ts";

let serial = 0;
/** A call nobody made before, also when several stores share a database. */
export const freshCall = (): string => `call-${process.pid}-${Date.now()}-${serial++}`;

/** Writes both entries of a call. */
export async function wholeCall(audit: AuditStore, data: Record<string, string> = {}): Promise<AuditRecord[]> {
  const callId = freshCall();
  const intent = await audit.append({ kind: "intent", callId, data: { server: "s", tool: "t", ...data } });
  const { pass } = intent;
  const outcome = await audit.append({
    kind: "outcome",
    callId,
    pass,
    data: { server: "s", tool: "t", outcome: "ok" },
  });
  return [intent, outcome];
}

/** What every audit store must do; run against each of them. @param open gives stores on the same database every time it can */
export function auditSuite(kind: string, open: (leaseMs?: number) => Stores): void {
  describe(`the audit trail in ${kind}`, () => {
    let stores: Stores;
    let audit: AuditStore;
    beforeAll(() => {
      stores = open();
      audit = stores.audit;
    });
    afterAll(() => stores.close());
    const intent = (callId: string, data = {}) => audit.append({ kind: "intent", callId, data });
    const outcome = (callId: string, pass: number | undefined, data: Record<string, string>) =>
      audit.append({ kind: "outcome", callId, pass, data });

    it("gives entries numbers without a gap, each with the hash of the one before", async () => {
      const [first, second] = await wholeCall(audit);
      const head = await audit.head();
      expect(head).toEqual({ seq: second?.seq, hash: second?.hash });
      expect(second).toMatchObject({ seq: (first?.seq ?? 0) + 1, previous: first?.hash, pass: 1 });
      const { hash, ...rest } = second as AuditRecord; // wholeCall() gave two
      expect(digest(rest)).toBe(hash);
      expect(new Date(rest.at).toISOString()).toBe(rest.at);
      expect(await audit.verify()).toMatchObject({ intact: true, head });
    });

    it("keeps whatever JSON can carry, and the hash is of what is read back", async () => {
      const json = fc.jsonValue({ maxDepth: 3, stringUnit: "binary" });
      const entry = fc.dictionary(fc.string({ unit: "binary", maxLength: 8 }), json, { maxKeys: 5 });
      await fc.assert(
        fc.asyncProperty(entry, async (given) => {
          const data = JSON.parse(JSON.stringify(given));
          const written = await audit.append({ kind: "intent", callId: freshCall(), data: given as never }); // jsonValue made it
          const [read] = await audit.read({ after: written.seq - 1, limit: 1 });
          expect(read).toEqual(written);
          expect(JSON.stringify(read?.data)).toBe(JSON.stringify(data));
          const { hash, ...rest } = read as AuditRecord; // found above
          // also with its keys in another order
          const turned = Object.fromEntries(Object.entries(rest).reverse());
          expect([digest(rest), digest(turned)]).toEqual([hash, hash]);
        }),
        { numRuns: 60 },
      );
      expect(await audit.verify()).toMatchObject({ intact: true });
    });

    it.each(["a\ud800b", "a\0b", "\udc00"])("is unbroken whatever a call names: %j", async (word) => {
      for (const name of ["server", "tool", "threadId"]) {
        const { pass, callId } = await intent(freshCall(), { [name]: word });
        await outcome(callId, pass, { [name]: word, outcome: "ok" });
      }
      expect(await audit.verify()).toMatchObject({ intact: true });
    });

    it("writes down what comes at once in one chain, and tells each caller of its own entry", async () => {
      const calls = Array.from({ length: 120 }, freshCall);
      const records = await Promise.all(calls.map((callId) => intent(callId, { callId })));
      expect(records.map(({ callId }) => callId)).toEqual(calls);
      expect(records.map(({ data }) => data.callId)).toEqual(calls);
      const seqs = records.map(({ seq }) => seq);
      expect(seqs).toEqual(seqs.map((_, i) => (seqs[0] ?? 0) + i));
      await Promise.all(calls.map((callId) => outcome(callId, 1, { outcome: "ok" })));
      expect(await audit.verify()).toMatchObject({ intact: true });
      const open = await audit.unfinished();
      expect(open.filter(({ intent: { callId } }) => calls.includes(callId))).toEqual([]);
    });

    it("counts the passes of a call, also of one that is sent several times at once", async () => {
      const callId = freshCall();
      const [one, two] = await Promise.all([intent(callId), intent(callId)]);
      expect([one?.pass, two?.pass]).toEqual([1, 2]);
      await outcome(callId, 2, { outcome: "ok" });
      await outcome(callId, 1, { outcome: "error" });
      expect((await intent(callId)).pass).toBe(3);
      const told = await audit.read({ callId });
      expect(told.map(({ kind: is, pass, data }) => [is, pass, data.outcome])).toEqual([
        ["intent", 1, undefined],
        ["intent", 2, undefined],
        ["outcome", 2, "ok"],
        ["outcome", 1, "error"],
        ["intent", 3, undefined],
      ]);
      await outcome(callId, 3, { outcome: "ok" });
    });

    it("takes one outcome a pass: the same again is the entry there is, another one is refused", async () => {
      const callId = freshCall();
      const { pass } = await intent(callId);
      const first = await outcome(callId, pass, { outcome: "ok", note: "a" });
      expect(await outcome(callId, pass, { note: "a", outcome: "ok" })).toEqual(first);
      await expect(outcome(callId, pass, { outcome: "error" })).rejects.toMatchObject({ code: "second_outcome" });
      await expect(outcome(callId, 7, { outcome: "ok" })).rejects.toMatchObject({ code: "no_intent" });
      expect(await audit.read({ callId })).toHaveLength(2);
      // its intent could not be written
      const without = freshCall();
      expect(await outcome(without, undefined, { outcome: "ok" })).toMatchObject({ kind: "outcome", pass: 1 });
    });

    it("refuses what it cannot keep, and says so", async () => {
      await expect(intent("")).rejects.toMatchObject({ code: "audit_entry" });
      await expect(intent("a\0b")).rejects.toThrow("without NUL");
      await expect(intent("a\ud800b")).rejects.toThrow("half characters");
      await expect(intent("c", [] as never)).rejects.toThrow("data of an audit entry is an object");
      await expect(intent("c", { n: Number.NaN })).rejects.toThrow("data.n is NaN");
      await expect(intent("c", { big: "x".repeat(5_000_000) })).rejects.toThrow("more than 4194304 bytes");
      await expect(audit.read({ limt: 1 } as never)).rejects.toThrow('did you mean "limit"');
      await expect(audit.read({ limit: 0 })).rejects.toThrow("whole number from 1 to 1000");
      expect(() => audit.tail({ pollMs: -1 })).toThrow("pollMs");
      expect(() => audit.export({ format: "xml" as never })).toThrow("jsonl, csv");
      await expect(audit.verify({ anchor: 3 as never })).rejects.toThrow("{ seq, hash }");
    });

    it("is read in pages, from either end, and by call, conversation, tool and time", async () => {
      const threadId = freshCall();
      const server = `server-${threadId}`;
      const begun = Date.now() - 1; // the database may have another clock, and not a quite different one
      const all: AuditRecord[] = [];
      for (const tool of ["look", "refund", "look"]) all.push(...(await wholeCall(audit, { threadId, server, tool })));
      const [first] = all;
      const numbers = (records: readonly AuditRecord[]) => records.map(({ seq }) => seq);
      // outcomes do not name their conversation
      expect(numbers(await audit.read({ thread: threadId }))).toEqual(numbers(all));
      expect(await audit.read({ server })).toHaveLength(3);
      expect(numbers(await audit.read({ server, tool: "look" }))).toEqual([all[0]?.seq, all[4]?.seq]);
      expect(numbers(await audit.read({ callId: first?.callId }))).toEqual(numbers(all.slice(0, 2)));
      expect(numbers(await audit.read({ thread: threadId, after: all[1]?.seq, limit: 2 }))).toEqual(
        numbers(all.slice(2, 4)),
      );
      expect(numbers(await audit.read({ thread: threadId, limit: 2, newest: true }))).toEqual(numbers(all.slice(4)));
      const at = Date.parse(all[0]?.at ?? "");
      expect(await audit.read({ thread: threadId, since: at, until: at + 60_000 })).toHaveLength(6);
      expect(await audit.read({ thread: threadId, until: at })).toEqual([]);
      expect(Math.abs(at - begun)).toBeLessThan(60_000);
    });

    it("is followed, from now on or from a place, until it is told to stop", async () => {
      const stop = new AbortController();
      const seen: AuditRecord[] = [];
      const following = (async () => {
        for await (const record of audit.tail({ signal: stop.signal })) {
          seen.push(record);
          if (seen.length === 4) stop.abort();
        }
      })();
      await sleep(50);
      const written = [...(await wholeCall(audit)), ...(await wholeCall(audit))];
      await following;
      expect(seen).toEqual(written);
      const again: AuditRecord[] = [];
      for await (const record of audit.tail({ after: (written[0]?.seq ?? 0) - 1 })) {
        again.push(record);
        if (again.length === 4) break;
      }
      expect(again).toEqual(written);
    });

    it("is written out as lines of JSON that anybody can check", async () => {
      const [one] = await wholeCall(audit);
      let before: AuditRecord | undefined;
      let lines = 0;
      for await (const line of audit.export()) {
        expect(line.endsWith("}\n")).toBe(true);
        const record: AuditRecord = JSON.parse(line);
        const { hash, ...rest } = record;
        expect(digest(rest)).toBe(hash);
        if (before) expect([rest.seq, rest.previous]).toEqual([before.seq + 1, before.hash]);
        before = record;
        lines += 1;
      }
      expect(lines).toBeGreaterThan(2);
      const since = Date.parse(one?.at ?? "");
      const some: string[] = [];
      for await (const line of audit.export({ since, tool: "t" })) some.push(line);
      expect(some.length).toBeGreaterThanOrEqual(2);
      expect(some.length).toBeLessThan(lines);
    });

    it("is written out as a table in which nothing is a formula", async () => {
      const threadId = freshCall();
      const tool = '=HYPERLINK("http://evil.example","look")';
      await wholeCall(audit, { threadId, tool, server: "a,b\nc", actor: "\t@SUM(1)" });
      const text: string[] = [];
      for await (const line of audit.export({ thread: threadId, format: "csv" })) text.push(line);
      const [head, row = ""] = text;
      expect(head).toBe(
        "seq,at,kind,callId,pass,server,tool,outcome,ms,actor,threadId,traceId,approval,data,previous,hash\r\n",
      );
      expect(row).toContain(`"a,b\nc","'=HYPERLINK(""http://evil.example"",""look"")",,,'\t@SUM(1),`);
    });

    it("has an open call while its store lives, and gives it up when the store is gone", async () => {
      const other = open();
      const callId = freshCall();
      await other.audit.append({ kind: "intent", callId, data: { server: "s", tool: "t" } });
      const found = async () => (await audit.unfinished()).find(({ intent: { callId: id } }) => id === callId);
      if (audit.shared) {
        expect(await found()).toMatchObject({ alive: true, intent: { callId, pass: 1 } });
        expect(await audit.sweep()).toEqual([]);
        await other.close();
        expect(await found()).toMatchObject({ alive: false });
        const [swept] = await audit.sweep();
        expect(swept).toMatchObject({
          kind: "outcome",
          callId,
          pass: 1,
          data: { server: "s", tool: "t", outcome: "unknown", why: "the process that made the call is gone" },
        });
        expect(await found()).toBeUndefined();
        expect(await audit.sweep()).toEqual([]);
      } else await other.close(); // with the process goes its trail
    });

    it("keeps a long call alive by renewing, whatever it waits for", async () => {
      const leaseMs = 600;
      const other = open(leaseMs);
      const callId = freshCall();
      const { pass } = await other.audit.append({ kind: "intent", callId, data: {} });
      await sleep(3 * leaseMs);
      expect(await audit.sweep()).toEqual([]);
      expect((await other.audit.unfinished()).find((one) => one.intent.callId === callId)?.alive).toBe(true);
      const end = await other.audit.append({ kind: "outcome", callId, pass, data: { outcome: "ok" } });
      expect(end.kind).toBe("outcome");
      await other.close();
    });

    it("appends the real outcome of a call that was given up as a correction, once", async () => {
      if (!audit.shared) return;
      const other = open();
      const callId = freshCall();
      const { pass } = await other.audit.append({ kind: "intent", callId, data: {} });
      // its lease holds, and still it is known to be dead
      const [unknown] = await audit.sweep({ isGone: () => true });
      expect(unknown).toMatchObject({ callId, data: { outcome: "unknown" } });
      const late = { kind: "outcome", callId, pass, data: { outcome: "ok" } } as const;
      const correction = await other.audit.append(late);
      expect(correction).toMatchObject({
        kind: "correction",
        pass,
        data: { outcome: "ok", corrects: unknown?.seq },
      });
      expect(await other.audit.append(late)).toEqual(correction);
      await expect(other.audit.append({ ...late, data: { outcome: "error" } })).rejects.toMatchObject({
        code: "second_outcome",
      });
      const told = await audit.read({ callId });
      expect(told.map(({ kind: is }) => is)).toEqual(["intent", "outcome", "correction"]);
      const before = await audit.verify();
      expect(before).toMatchObject({ intact: true, corrections: 1 });
      await other.close();
    });

    it("closes the pass that another process left open when the call is sent again", async () => {
      if (!audit.shared) return;
      const other = open();
      const callId = freshCall();
      await other.audit.append({ kind: "intent", callId, data: { server: "s", tool: "t" } });
      const resumed = await intent(callId, { server: "s", tool: "t" });
      await outcome(callId, resumed.pass, { outcome: "ok" });
      expect((await audit.read({ callId })).map(({ kind: is, pass, data }) => [is, pass, data.outcome])).toEqual([
        ["intent", 1, undefined],
        ["outcome", 1, "unknown"],
        ["intent", 2, undefined],
        ["outcome", 2, "ok"],
      ]);
      await other.close();
      expect((await audit.sweep()).filter((record) => record.callId === callId)).toEqual([]);
    });

    it("takes the entries of a client, whose passes begin anew in each process", async () => {
      const callId = freshCall();
      const entry = { kind: "intent", callId, pass: 1, server: "s", tool: "t", at: "2026-01-01T00:00:00.000Z" };
      const end = { kind: "outcome", callId, pass: 1, server: "s", tool: "t", at: "x", ms: 3, outcome: "suspended" };
      for (let i = 0; i < 2; i++) {
        const sink = audit.sink();
        await sink.intent(entry);
        await sink.outcome(end);
      }
      const told = await audit.read({ callId });
      expect(told.map(({ kind: is, pass, data }) => [is, pass, data.outcome])).toEqual([
        ["intent", 1, undefined],
        ["outcome", 1, "suspended"],
        ["intent", 2, undefined],
        ["outcome", 2, "suspended"],
      ]);
      expect(told[0]?.data).toEqual({ server: "s", tool: "t", at: "2026-01-01T00:00:00.000Z" });
    });

    it("is closed once, and says so to whoever still writes", async () => {
      const other = open();
      await other.audit.close();
      await other.audit.close();
      await expect(other.audit.append({ kind: "intent", callId: "c", data: {} })).rejects.toMatchObject({
        code: "store_closed",
      });
      await other.close();
    });
  });
}
