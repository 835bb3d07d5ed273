import type { Migration } from "./index.ts";

/** Where the clock of a SQLite file begins: one row, of the boot that used it last. Postgres has a clock of its own. */
export const clock: Migration = {
  name: "005_clock",
  only: "sqlite",
  statements: (schema) =>
    [
      schema
        .createTable("tenon_clock")
        .addColumn("id", "integer", (column) => column.primaryKey())
        .addColumn("boot", "text", (column) => column.notNull())
        .addColumn("monotonic_ms", "bigint", (column) => column.notNull())
        .addColumn("at_ms", "bigint", (column) => column.notNull()),
    ].map((statement) => statement.compile()),
};
