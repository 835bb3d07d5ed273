import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { useWriteAheadLog } from "../src/write-ahead.ts";

const PROCESSES = 6;
const FILES = 40;

/** Opens a row of new files in the write-ahead log, the same as others do at the same moment. @returns its standard error */
function opener(folder: string, at: number): Promise<string> {
  const module = fileURLToPath(new URL("../src/write-ahead.ts", import.meta.url));
  const script = `
    import Database from "better-sqlite3";
    import { useWriteAheadLog } from ${JSON.stringify(module)};
    while (Date.now() < ${at});
    for (let i = 0; i < ${FILES}; i++) {
      const database = new Database(${JSON.stringify(folder)} + "/" + i + ".db", { timeout: 5000 });
      useWriteAheadLog(database, 10000);
      database.exec("create table if not exists t (n)");
      database.close();
    }`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve) => child.once("close", () => resolve(stderr)));
}

it("new files are switched by several processes at once without an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tenon-wal-"));
  try {
    const at = Date.now() + 3_000;
    const said = await Promise.all(Array.from({ length: PROCESSES }, () => opener(folder, at)));
    expect(said).toEqual(Array.from({ length: PROCESSES }, () => ""));
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
