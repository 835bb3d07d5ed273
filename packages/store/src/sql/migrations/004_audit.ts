import type { Migration } from "./index.ts";

/**
 * The audit trail, where it ends, and its open calls. `data` is JSON text; what stands beside it was taken from it, to be looked
 * for. `tenon_audit_open` only spares a search through the trail: it holds nothing that is not in there.
 */
export const audit: Migration = {
  name: "004_audit",
  statements: (schema) =>
    [
      schema
        .createTable("tenon_audit")
        .addColumn("seq", "bigint", (column) => column.primaryKey())
        .addColumn("at", "text", (column) => column.notNull())
        .addColumn("kind", "text", (column) => column.notNull())
        .addColumn("call_id", "text", (column) => column.notNull())
        .addColumn("pass", "integer", (column) => column.notNull())
        .addColumn("server", "text")
        .addColumn("tool", "text")
        .addColumn("thread_id", "text")
        .addColumn("data", "text", (column) => column.notNull())
        .addColumn("previous", "text", (column) => column.notNull())
        .addColumn("hash", "text", (column) => column.notNull())
        .addUniqueConstraint("tenon_audit_call", ["call_id", "pass", "kind"]),
      schema.createIndex("tenon_audit_thread").on("tenon_audit").column("thread_id"),
      schema.createIndex("tenon_audit_at").on("tenon_audit").column("at"),
      schema
        .createTable("tenon_audit_head")
        .addColumn("id", "integer", (column) => column.primaryKey())
        .addColumn("seq", "bigint", (column) => column.notNull())
        .addColumn("hash", "text", (column) => column.notNull()),
      schema
        .createTable("tenon_audit_open")
        .addColumn("call_id", "text", (column) => column.notNull())
        .addColumn("pass", "integer", (column) => column.notNull())
        .addColumn("seq", "bigint", (column) => column.notNull())
        .addColumn("writer", "text", (column) => column.notNull())
        .addPrimaryKeyConstraint("tenon_audit_open_call", ["call_id", "pass"]),
      schema.createIndex("tenon_audit_open_writer").on("tenon_audit_open").column("writer"),
    ].map((statement) => statement.compile()),
};
