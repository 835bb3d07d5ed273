import type { Migration } from "./index.ts";

/** The last context of each session of each caller, by a digest of whose it is. */
export const contexts: Migration = {
  name: "006_contexts",
  statements: (schema) =>
    [
      schema
        .createTable("tenon_contexts")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("context", "text", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull()),
      schema.createIndex("tenon_contexts_expires").on("tenon_contexts").column("expires_at"),
    ].map((statement) => statement.compile()),
};
