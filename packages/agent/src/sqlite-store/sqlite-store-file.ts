import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { useWriteAheadLog } from "@tenon/store/sqlite";
import Database from "better-sqlite3";

const BUSY_MS = 15_000;

/** Numbered steps of the table's history, never edited once released. */
const MIGRATIONS: readonly string[] = [
  `create table tenon_memory (
     path text not null, -- the labels of the namespace, joined by ":", which no label contains
     key text not null,
     value text not null,
     created_at integer not null, -- milliseconds since 1970, like all times here
     updated_at integer not null,
     expires_at integer,
     primary key (path, key)
   );
   create index tenon_memory_expires on tenon_memory (expires_at) where expires_at is not null;`,
];

/** Opens the file, made with its folder when there is none, with its table brought up to date by one process at a time. */
export function openMemoryFile(path: string): Database.Database {
  if (path !== ":memory:") {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, "a", 0o600)); // what is remembered of people is for the owner only
  }
  const database = new Database(path, { timeout: BUSY_MS });
  try {
    useWriteAheadLog(database, BUSY_MS);
    // exclusive: of several processes that start together one migrates, and the others find it done
    database
      .transaction(() => {
        database.exec("create table if not exists tenon_memory_migrations (step integer primary key)");
        const done = Number(database.prepare("select count(*) from tenon_memory_migrations").pluck().get());
        for (const [step, sql] of MIGRATIONS.entries()) {
          if (step < done) continue;
          database.exec(sql);
          database.prepare("insert into tenon_memory_migrations values (?)").run(step);
        }
      })
      .exclusive();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
