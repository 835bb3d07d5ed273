// Opens a row of new files in the write-ahead log, as soon as it is told to on its standard input.
import { once } from "node:events";
import { join } from "node:path";
import Database from "better-sqlite3";
import { useWriteAheadLog } from "../src/sql/write-ahead.ts";

const [folder = "", files = "0"] = process.argv.slice(2);
process.stdout.write("ready\n");
await once(process.stdin, "data");
process.stdin.destroy();
for (let i = 0; i < Number(files); i++) {
  const database = new Database(join(folder, `${i}.db`), { timeout: 5_000 });
  useWriteAheadLog(database, 10_000);
  database.exec("create table if not exists t (n)");
  database.close();
}
