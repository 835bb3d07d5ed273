import type { TaskStatus } from "@tenon/store";

/** Where a task may stand. */
export const STATUSES: readonly TaskStatus[] = ["working", "input_required", "completed", "failed", "cancelled"];
