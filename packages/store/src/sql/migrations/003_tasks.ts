import type { Migration } from "./index.ts";

/**
 * Tasks, a row each, and their finished steps, a row each. Times are milliseconds since 1970; `run_fence` is the fence of the run
 * that has begun and not ended; a task is due from `due_at` on while it is working and nobody holds its lease.
 */
export const tasks: Migration = {
  name: "003_tasks",
  statements: (schema) =>
    [
      schema
        .createTable("tenon_tasks")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("server", "text", (column) => column.notNull())
        .addColumn("tool", "text", (column) => column.notNull())
        .addColumn("owner", "text", (column) => column.notNull())
        .addColumn("call_key", "text", (column) => column.unique())
        .addColumn("call_digest", "text")
        .addColumn("call", "text", (column) => column.notNull())
        .addColumn("ttl_ms", "bigint")
        .addColumn("poll_interval_ms", "bigint", (column) => column.notNull())
        .addColumn("status", "text", (column) => column.notNull())
        .addColumn("status_message", "text")
        .addColumn("progress", "text")
        .addColumn("created_at", "bigint", (column) => column.notNull())
        .addColumn("updated_at", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "bigint")
        .addColumn("asked", "text")
        .addColumn("used_keys", "text", (column) => column.notNull())
        .addColumn("journal", "text")
        .addColumn("result", "text")
        .addColumn("error", "text")
        .addColumn("fruitless", "integer", (column) => column.notNull())
        .addColumn("dead", "integer", (column) => column.notNull())
        .addColumn("due_at", "bigint", (column) => column.notNull())
        .addColumn("run_fence", "bigint")
        .addColumn("job", "text"),
      schema.createIndex("tenon_tasks_due").on("tenon_tasks").columns(["status", "server", "due_at"]),
      schema.createIndex("tenon_tasks_created").on("tenon_tasks").column("created_at"),
      schema.createIndex("tenon_tasks_expires").on("tenon_tasks").column("expires_at"),
      schema
        .createTable("tenon_task_steps")
        .addColumn("task", "text", (column) => column.notNull())
        .addColumn("step", "text", (column) => column.notNull())
        .addColumn("result", "text", (column) => column.notNull())
        .addColumn("fence", "bigint", (column) => column.notNull())
        .addColumn("at", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("tenon_task_steps_key", ["task", "step"]),
    ].map((statement) => statement.compile()),
};
