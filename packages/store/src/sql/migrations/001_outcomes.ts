import type { Migration } from "./index.ts";

/** Claims with their outcome, the parts finished before a crash, and texts kept by id. Times are milliseconds since 1970. */
export const outcomes: Migration = {
  name: "001_outcomes",
  statements: (schema) =>
    [
      schema
        .createTable("tenon_outcomes")
        .addColumn("key", "text", (column) => column.primaryKey())
        .addColumn("digest", "text", (column) => column.notNull())
        .addColumn("status", "text", (column) => column.notNull())
        .addColumn("begun", "integer", (column) => column.notNull())
        .addColumn("fence", "bigint", (column) => column.notNull())
        .addColumn("lease_until", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull())
        .addColumn("outcome", "text"),
      schema.createIndex("tenon_outcomes_expires").on("tenon_outcomes").column("expires_at"),
      schema
        .createTable("tenon_outcome_parts")
        .addColumn("key", "text", (column) => column.notNull())
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("value", "text", (column) => column.notNull())
        .addPrimaryKeyConstraint("tenon_outcome_parts_key", ["key", "name"]),
      schema
        .createTable("tenon_blobs")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("body", "text", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull()),
      schema.createIndex("tenon_blobs_expires").on("tenon_blobs").column("expires_at"),
    ].map((statement) => statement.compile()),
};
