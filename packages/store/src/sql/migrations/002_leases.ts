import type { Migration } from "./index.ts";

/** One holder per name. A released lease stays for a while without a holder, so that its fence goes on growing. */
export const leases: Migration = {
  name: "002_leases",
  statements: (schema) =>
    [
      schema
        .createTable("tenon_leases")
        .addColumn("name", "text", (column) => column.primaryKey())
        .addColumn("holder", "text", (column) => column.notNull())
        .addColumn("fence", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull()),
      schema.createIndex("tenon_leases_expires").on("tenon_leases").column("expires_at"),
    ].map((statement) => statement.compile()),
};
