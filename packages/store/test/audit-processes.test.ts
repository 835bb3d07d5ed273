import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { AuditRecord, AuditStore, Stores } from "../src/index.ts";
import { isProcessGone } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { onPostgres } from "./postgres.ts";
import { race, start } from "./spawn.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-audit-processes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const KILLS = 50;

async function all(audit: AuditStore): Promise<Map<string, AuditRecord>> {
  const found = new Map<string, AuditRecord>();
  for await (const line of audit.export()) {
    const record: AuditRecord = JSON.parse(line);
    found.set(record.hash, record);
  }
  return found;
}

/** What was said before the end; a last line that was cut off was not said. */
const said = (text: string): string[] => text.split("\n").slice(0, -1);

function betweenProcesses(kind: string, where: string, schema: string, open: () => Stores): void {
  describe(`the audit trail in ${kind}, between processes`, () => {
    it("is one unbroken chain when eight of them write at once", async () => {
      const lines = (await race(8, "./appender.ts", kind, where, schema, "25")).flat();
      expect(lines).toHaveLength(8 * 25 * 2);
      await using stores = open();
      const found = await all(stores.audit);
      expect(found.size).toBe(lines.length);
      for (const line of lines) expect(found.has(line.split(" ")[2] ?? "")).toBe(true);
      expect(await stores.audit.verify()).toMatchObject({
        intact: true,
        entries: lines.length,
        intents: 200,
        unknown: 0,
      });
      expect(await stores.audit.unfinished()).toEqual([]);
    }, 120_000);

    it(`is unbroken after ${KILLS} kills while it is written, lacks nothing that was acknowledged, and leaves nothing open`, async () => {
      await using stores = open();
      const { audit } = stores;
      let acknowledged = 0;
      const round = async (i: number): Promise<string[]> => {
        const child = await start("./appender.ts", kind, where, schema);
        let out = "";
        child.stdout?.on("data", (chunk) => {
          out += chunk;
        });
        const ended = once(child, "close");
        if (child.stdout) await once(child.stdout, "data");
        await sleep((i * 7) % 40);
        child.kill("SIGKILL");
        await ended;
        return said(out);
      };
      const lines: string[] = [];
      // two at a time: one is killed while the other one writes
      for (let i = 0; i < KILLS; i += 2) lines.push(...(await Promise.all([round(i), round(i + 1)])).flat());
      const found = await all(audit);
      for (const line of lines) {
        const [what, callId, hash = ""] = line.split(" ");
        expect(found.get(hash)).toMatchObject({ kind: what, callId });
        acknowledged += 1;
      }
      expect(acknowledged).toBeGreaterThan(KILLS);
      expect(await audit.verify()).toMatchObject({ intact: true, entries: found.size });

      const left = await audit.unfinished();
      const swept = await audit.sweep({ isGone: isProcessGone });
      expect(swept.map(({ callId }) => callId).sort()).toEqual(left.map(({ intent }) => intent.callId).sort());
      expect(await audit.unfinished()).toEqual([]);
      const ends = new Set<string>();
      for (const { kind: is, callId, pass } of (await all(audit)).values()) {
        if (is !== "outcome") continue;
        expect(ends.has(`${callId} ${pass}`)).toBe(false);
        ends.add(`${callId} ${pass}`);
      }
      // the later ones have given up calls of the first ones, too
      const unknown = [...(await all(audit)).values()].filter(({ data }) => data.outcome === "unknown").length;
      expect(unknown).toBeGreaterThanOrEqual(swept.length);
      expect(await audit.verify()).toMatchObject({ intact: true, unknown, intents: ends.size, corrections: 0 });
    }, 240_000);

    it("is followed across processes", async () => {
      await using stores = open();
      const seen: string[] = [];
      const stop = AbortSignal.timeout(60_000);
      const following = (async () => {
        for await (const { kind: is, callId } of stores.audit.tail({ signal: stop })) {
          seen.push(`${is} ${callId}`);
          if (seen.length === 20) break;
        }
      })();
      await sleep(100);
      const [lines = []] = await race(1, "./appender.ts", kind, where, schema, "10");
      await following;
      expect([...seen].sort()).toEqual(lines.map((line) => line.split(" ").slice(0, 2).join(" ")).sort());
    }, 120_000);

    it("gives up a killed process's calls when its lease has run out, without knowing that it is dead", async () => {
      await using stores = open();
      const { audit } = stores;
      const before = (await audit.verify()).entries;
      // killed again and again until it leaves a call open: it may die between two calls
      for (;;) {
        const child = await start("./appender.ts", kind, where, schema, "endless", "4", "1000");
        const ended = once(child, "close");
        if (child.stdout) await once(child.stdout, "data");
        child.kill("SIGKILL");
        await ended;
        if ((await audit.unfinished()).length > 0) break;
      }
      const swept: AuditRecord[] = [];
      const limit = Date.now() + 20_000;
      while ((await audit.unfinished()).length > 0) {
        swept.push(...(await audit.sweep()));
        expect(Date.now()).toBeLessThan(limit);
        await sleep(50);
      }
      expect(swept.length).toBeGreaterThan(0);
      for (const { seq, data } of swept) {
        expect(seq).toBeGreaterThan(before);
        expect(data.outcome).toBe("unknown");
      }
      expect((await audit.verify()).intact).toBe(true);
    }, 60_000);
  });
}

const file = join(folder, "race.db");
betweenProcesses("sqlite", file, "", () => openSqlite({ path: file }));
onPostgres("the audit trail between processes", "audit_processes", (url, schema) => {
  const raced = `${schema}_race`;
  betweenProcesses("postgres", url, raced, () => openPostgres({ url, schema: raced }));
});
