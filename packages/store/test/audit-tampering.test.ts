import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digest } from "@tenon/core/internal";
import Database from "better-sqlite3";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import type { AuditAnchor, AuditRecord, AuditStore, Stores } from "../src/index.ts";
import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";
import { wholeCall } from "./audit-suite.ts";
import { onPostgres } from "./postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-tampering-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Somebody with the right to write to the database. */
type Meddle = (sql: string, ...values: (string | number)[]) => Promise<void>;

interface Scene {
  readonly audit: AuditStore;
  readonly meddle: Meddle;
  entry(seq: number): Promise<AuditRecord>;
}

/** An entry with a hash that fits it. */
function sealed(entry: Omit<AuditRecord, "hash">): AuditRecord {
  const { seq, at, kind, callId, pass, data, previous } = entry;
  const unsealed = { seq, at, kind, callId, pass, data, previous };
  return { ...unsealed, hash: digest(unsealed) };
}

/** Puts an entry at its place, over what is there. */
async function put({ meddle }: Scene, { seq, at, kind, callId, pass, data, previous, hash }: AuditRecord) {
  await meddle("delete from tenon_audit where seq = ?", seq);
  const words = ["server", "tool"].map((key) => String(data[key]));
  await meddle(
    "insert into tenon_audit (seq, at, kind, call_id, pass, data, previous, hash, server, tool) values (?,?,?,?,?,?,?,?,?,?)",
    ...[seq, at, kind, callId, pass, JSON.stringify(data), previous, hash],
    ...words,
  );
}

const shift = async ({ meddle }: Scene, after: number, by: number) => {
  await meddle("update tenon_audit set seq = seq + 100000 where seq > ?", after);
  await meddle("update tenon_audit set seq = seq - 100000 + ? where seq > 100000", by);
};
const swap = async ({ meddle }: Scene, one: number, other: number) => {
  await meddle("update tenon_audit set seq = -1 where seq = ?", one);
  await meddle("update tenon_audit set seq = ? where seq = ?", one, other);
  await meddle("update tenon_audit set seq = ? where seq = -1", other);
};
const forged = async (scene: Scene, seq: number, over: Partial<AuditRecord> = {}): Promise<AuditRecord> => {
  const before = seq === 1 ? { hash: "" } : await scene.entry(seq - 1);
  const one = await scene.entry(Math.min(seq, 10));
  return sealed({ ...one, seq, callId: "forged", previous: before.hash, ...over });
};

type Expected = { readonly problem: string; readonly seq: number; readonly message: string };

/** Ten entries are there. What is done to them, and what is found. */
const TAMPERINGS: Record<string, [(scene: Scene) => Promise<unknown>, Expected]> = {
  "an entry's data": [
    ({ meddle }) => meddle("update tenon_audit set data = replace(data, '\"s\"', '\"x\"') where seq = 4"),
    { problem: "changed", seq: 4, message: "does not fit its hash" },
  ],
  "an entry's data, no JSON any more": [
    ({ meddle }) => meddle("update tenon_audit set data = 'gone' where seq = 4"),
    { problem: "changed", seq: 4, message: "does not fit its hash" },
  ],
  "when an entry was written": [
    ({ meddle }) => meddle("update tenon_audit set at = '2020-01-01T00:00:00.000Z' where seq = 7"),
    { problem: "changed", seq: 7, message: "does not fit its hash" },
  ],
  "whose call it was": [
    ({ meddle }) => meddle("update tenon_audit set call_id = 'another' where seq = 1"),
    { problem: "changed", seq: 1, message: "does not fit its hash" },
  ],
  "what an entry is looked for by": [
    ({ meddle }) => meddle("update tenon_audit set tool = 'other' where seq = 2"),
    { problem: "changed", seq: 2, message: "does not fit its hash" },
  ],
  "an entry, with a hash that fits": [
    async (scene) => put(scene, await forged(scene, 5)),
    { problem: "changed", seq: 5, message: "not the one that entry 6 was written after" },
  ],
  "the last entry, with a hash that fits": [
    async (scene) => put(scene, await forged(scene, 10)),
    { problem: "changed", seq: 10, message: "the last one, was changed" },
  ],
  "an entry is gone": [
    ({ meddle }) => meddle("delete from tenon_audit where seq = 3"),
    { problem: "removed", seq: 3, message: "entry 3 was removed" },
  ],
  "the first ones are gone": [
    ({ meddle }) => meddle("delete from tenon_audit where seq < 4"),
    { problem: "removed", seq: 1, message: "entries 1 to 3 were removed" },
  ],
  "an entry is gone, and the others have moved up": [
    async (scene) => {
      await scene.meddle("delete from tenon_audit where seq = 3");
      await shift(scene, 3, -1);
    },
    { problem: "removed", seq: 3, message: "an entry was removed at 3: what stands there was written as entry 4" },
  ],
  "an entry is inserted": [
    async (scene) => {
      await shift(scene, 4, 1);
      await put(scene, await forged(scene, 5));
    },
    { problem: "inserted", seq: 5, message: "entry 5 was inserted" },
  ],
  "an entry with a wrong hash is inserted": [
    async (scene) => {
      const entry = await forged(scene, 5);
      await shift(scene, 4, 1);
      await put(scene, { ...entry, hash: digest("wrong") });
    },
    { problem: "inserted", seq: 5, message: "entry 5 was inserted" },
  ],
  "an entry is inserted before the first": [
    async (scene) => put(scene, await forged(scene, 1, { seq: 0 })),
    { problem: "inserted", seq: 0, message: "before the first one" },
  ],
  "an entry is inserted after the last": [
    async (scene) => put(scene, await forged(scene, 11)),
    { problem: "inserted", seq: 11, message: "entry 11 was inserted after the last one" },
  ],
  "two entries have changed places": [
    (scene) => swap(scene, 3, 7),
    { problem: "reordered", seq: 3, message: "entry 3 was written as entry 7" },
  ],
  "two neighbours have changed places": [
    (scene) => swap(scene, 5, 6),
    { problem: "reordered", seq: 5, message: "entry 5 was written as entry 6" },
  ],
  "the end is cut off": [
    ({ meddle }) => meddle("delete from tenon_audit where seq > 8"),
    { problem: "cut", seq: 9, message: "entries 9 to 10, the last ones, were cut off" },
  ],
  "everything is gone": [
    ({ meddle }) => meddle("delete from tenon_audit"),
    { problem: "cut", seq: 1, message: "entries 1 to 10" },
  ],
  "the end is cut off, and so is what says where it is": [
    async ({ meddle }) => {
      await meddle("delete from tenon_audit where seq > 8");
      await meddle("delete from tenon_audit_head");
    },
    { problem: "cut", seq: 1, message: "what says where the trail ends is gone" },
  ],
};

function tampering(kind: string, open: () => Promise<{ stores: Stores; meddle: Meddle }>): void {
  async function scene(): Promise<Scene & AsyncDisposable> {
    const { stores, meddle } = await open();
    const { audit } = stores;
    for (let i = 0; i < 5; i++) await wholeCall(audit);
    const entry = async (seq: number): Promise<AuditRecord> => {
      const [found] = await audit.read({ after: seq - 1, limit: 1 });
      if (!found) throw new Error(`no entry ${seq}`);
      return found;
    };
    return { audit, meddle, entry, [Symbol.asyncDispose]: () => stores.close() };
  }

  describe(`a trail in ${kind} that somebody has meddled with`, () => {
    it.each(Object.entries(TAMPERINGS))("is found out: %s", async (_, [tamper, expected]) => {
      await using made = await scene();
      expect(await made.audit.verify()).toMatchObject({ intact: true, entries: 10 });
      await tamper(made);
      const { problem, seq, message } = expected;
      expect(await made.audit.verify()).toMatchObject({
        intact: false,
        problem,
        seq,
        message: expect.stringContaining(message),
      });
    });

    it("is found out by an anchor where it was rewritten as a whole, or cut off with its head", async () => {
      await using made = await scene();
      const head = await made.audit.head();
      const anchor = head as AuditAnchor; // ten entries are there
      const early = await made.entry(3).then(({ seq, hash }) => ({ seq, hash }));
      // from 2 on everything anew
      let before = await made.entry(1);
      for (let seq = 2; seq <= 10; seq++) {
        before = sealed({ ...(await made.entry(seq)), previous: before.hash, at: before.at, callId: `new-${seq}` });
        await put(made, before);
      }
      await made.meddle("update tenon_audit_head set hash = ?", before.hash);
      expect(await made.audit.verify()).toMatchObject({ intact: true }); // nothing in the database tells
      for (const kept of [anchor, early]) {
        expect(await made.audit.verify({ anchor: kept })).toMatchObject({
          intact: false,
          problem: "changed",
          seq: kept.seq,
          message: expect.stringContaining("not the one that the anchor names"),
        });
      }
      const last = await made.entry(6);
      await made.meddle("delete from tenon_audit where seq > 6");
      await made.meddle("update tenon_audit_head set seq = 6, hash = ?", last.hash);
      expect(await made.audit.verify()).toMatchObject({ intact: true, entries: 6 });
      expect(await made.audit.verify({ anchor })).toMatchObject({ intact: false, problem: "cut", seq: 7 });
    });

    it("gets no further entry where nobody can say where it ends", async () => {
      await using made = await scene();
      await made.meddle("delete from tenon_audit_head");
      await expect(wholeCall(made.audit)).rejects.toMatchObject({ code: "broken" });
    });

    it("is still unbroken with an anchor that fits, also when it has grown", async () => {
      await using made = await scene();
      const anchor = (await made.audit.head()) as AuditAnchor; // ten entries are there
      await wholeCall(made.audit);
      const seen: number[] = [];
      const verdict = await made.audit.verify({ anchor, onProgress: (checked) => seen.push(checked) });
      expect(verdict).toMatchObject({ intact: true, entries: 12 });
      expect(seen.at(-1)).toBe(12);
    });
  });
}

let files = 0;
tampering("SQLite", async () => {
  const path = join(folder, `${files++}.db`);
  const stores = openSqlite({ path });
  const database = new Database(path);
  const meddle: Meddle = async (sql, ...values) => void database.prepare(sql).run(...values);
  return { stores, meddle };
});

onPostgres("a trail that somebody has meddled with", "tampering", (url, schema) => {
  const pool = new pg.Pool({ connectionString: url, max: 1, options: `-c search_path=${schema}` });
  afterAll(() => pool.end());
  tampering("Postgres", async () => {
    const stores = openPostgres({ url, schema });
    await stores.audit.head(); // makes the tables
    for (const table of ["tenon_audit", "tenon_audit_head", "tenon_audit_open"])
      await pool.query(`delete from ${table}`);
    const meddle: Meddle = async (sql, ...values) => {
      let n = 0;
      await pool.query(
        sql.replaceAll("?", () => `$${++n}`),
        values,
      );
    };
    return { stores, meddle };
  });
});
