import { openSqliteFile, type SqliteStep } from "@tenon/store/sqlite";
import type Database from "better-sqlite3";

const HISTORY: readonly SqliteStep[] = [
  {
    name: "memory_001",
    statements: [
      `create table tenon_memory (
         path text not null, -- the labels of the namespace, joined by ":", which no label contains
         key text not null,
         value text not null,
         created_at integer not null, -- milliseconds since 1970, like all times here
         updated_at integer not null,
         expires_at integer,
         primary key (path, key)
       )`,
      "create index tenon_memory_expires on tenon_memory (expires_at) where expires_at is not null",
    ],
  },
];

/** Opens the file, made with its folder when there is none, with its table brought up to date. */
export const openMemoryFile = (path: string): Database.Database => openSqliteFile(path, { history: HISTORY });
