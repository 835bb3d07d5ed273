import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import { useWriteAheadLog } from "../src/sql/write-ahead.ts";

const PROCESSES = 6;
const FILES = 40;

/** A process that opens a row of new files when it is told to. */
async function opener(folder: string) {
  const child = spawn(process.execPath, [await program("./wal-opener.ts", import.meta.url), folder, String(FILES)]);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code]) => `${code} ${stderr}`);
  await Promise.race([once(child.stdout, "data"), ended]);
  return { go: () => child.stdin.write("go\n"), ended };
}

it("new files are switched by several processes at once without an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tenon-wal-"));
  try {
    const openers = await Promise.all(Array.from({ length: PROCESSES }, () => opener(folder)));
    for (const { go } of openers) go();
    const said = await Promise.all(openers.map(({ ended }) => ended));
    expect(said).toEqual(Array.from({ length: PROCESSES }, () => "0 "));
    const database = new Database(join(folder, "0.db"));
    expect(database.pragma("journal_mode", { simple: true })).toBe("wal");
    database.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 60_000);

it("what is no database is an error at once", () => {
  const failing = {
    pragma() {
      throw Object.assign(new Error("file is not a database"), { code: "SQLITE_NOTADB" });
    },
  };
  expect(() => useWriteAheadLog(failing, 60_000)).toThrow("not a database");
});
