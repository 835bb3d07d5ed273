import type { CompiledQuery, SchemaModule } from "kysely";
import { outcomes } from "./001_outcomes.ts";
import { leases } from "./002_leases.ts";
import { tasks } from "./003_tasks.ts";
import { audit } from "./004_audit.ts";
import { clock } from "./005_clock.ts";
import { contexts } from "./006_contexts.ts";

/** One step of the tables' history. Never edited once released: a change is a new file with the next number. */
export interface Migration {
  readonly name: string;
  /** The only database that needs it. Default: both. */
  readonly only?: "sqlite";
  /** The statements in order; one schema builder writes them for both databases. */
  statements(schema: SchemaModule): readonly CompiledQuery[];
}

/** All migrations, oldest first. */
export const migrations: readonly Migration[] = [outcomes, leases, tasks, audit, clock, contexts];
