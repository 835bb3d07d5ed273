import { createHash } from "node:crypto";
import { ConfigError } from "@tenon/core";
import { anything, checkOptions, milliseconds, type OptionChecks, positive } from "@tenon/core/internal";
import { Kysely, PostgresDialect, sql } from "kysely";
import { createPostgresSignals } from "./event/postgres-signals.ts";
import { checkLeaseMs, LEASE_MS } from "./outcome/outcomes.ts";
import { shareSide } from "./sql/connection.ts";
import { migrations } from "./sql/migrations/index.ts";
import { createPool } from "./sql/postgres-pool.ts";
import type { SqlSide, Tables } from "./sql/side.ts";
import { createSqlStores } from "./sql/sql-stores.ts";
import type { Stores } from "./stores.ts";
import { createBossQueue } from "./task/boss-queue.ts";
import type { TaskQueue } from "./task/queue.ts";

/** Which database the stores of several machines share. */
export interface PostgresOptions {
  /** Address of the database, for example `postgres://user@host:5432/database`. */
  url: string;
  /** Schema of the tables, made when there is none. Default `tenon`. */
  schema?: string;
  /** Connections at once, besides the one that listens for events while somebody does. Default 10. */
  maxConnections?: number;
  /** Milliseconds to wait for a connection: until the database answers, or one of `maxConnections` is free. Default 10 seconds. */
  connectionTimeoutMs?: number;
  /** Milliseconds a statement may take, and a transaction may stand still. Default 30 seconds. */
  statementTimeoutMs?: number;
  /** Milliseconds a claim on an outcome or the run of a task lasts unless it is renewed. Default 15 seconds. */
  leaseMs?: number;
}

const OPTIONS: OptionChecks<PostgresOptions> = {
  url: anything,
  schema: anything,
  maxConnections: positive("connections"),
  connectionTimeoutMs: milliseconds,
  statementTimeoutMs: milliseconds,
  leaseMs: anything,
};

/** Any number that nobody else locks: the first bytes of "tenon". */
const MIGRATION_LOCK = 0x74656e6f;

/** Milliseconds a transaction that holds a lock may do nothing. */
const IDLE_MS = 10_000;
/** Milliseconds since 1970; no part of one, as `Date.now()` has none. */
const CLOCK = sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`;
const MOMENT = sql<number>`floor(extract(epoch from statement_timestamp()) * 1000)::bigint`;

async function migrate(db: Kysely<Tables>, schema: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // held until the transaction ends; the others wait here and find everything done
    await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(trx);
    await trx.schema.createSchema(schema).ifNotExists().execute();
    const table = sql.table(`${schema}.tenon_migrations`);
    await sql`create table if not exists ${table} (name text primary key, at timestamptz not null default now())`.execute(
      trx,
    );
    const { rows } = await sql<{ name: string }>`select name from ${table}`.execute(trx);
    const done = new Set(rows.map((row) => row.name));
    for (const { name, only, statements } of migrations) {
      if (only !== undefined || done.has(name)) continue;
      for (const statement of statements(trx.schema.withSchema(schema))) await trx.executeQuery(statement);
      await sql`insert into ${table} (name) values (${name})`.execute(trx);
    }
  });
}

/** A name next to that of the schema, short enough to be one. */
function besides(schema: string, what: string): string {
  const name = `${schema}_${what}`;
  // pg-boss takes 50 characters, and writes tables of the name job_i… into its statements
  return name.length <= 50 && !name.includes("job_i")
    ? name
    : `tenon_${createHash("sha256").update(schema).digest("hex").slice(0, 24)}_${what}`;
}

/** A database that is opened at first use. */
interface Connected {
  readonly attach: () => SqlSide;
  /** Tasks in the order in which they are due. */
  queue(side: SqlSide): TaskQueue;
}

function connect(options: PostgresOptions): Connected {
  const { url, schema = "tenon", maxConnections = 10 } = options;
  const { connectionTimeoutMs = 10_000, statementTimeoutMs = 30_000 } = options;
  // left out, the driver would take whatever database runs on this machine
  if (typeof url !== "string" || url === "") {
    throw new ConfigError("openPostgres needs options.url, such as postgres://user@host:5432/database", {
      code: "no_url",
    });
  }
  const [, protocol = "postgres"] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url) ?? [];
  if (!/^(postgres(ql)?|socket)$/i.test(protocol)) {
    throw new ConfigError(
      `openPostgres: an address of Postgres begins with postgres://, this one with ${protocol}://`,
      {
        code: "database_address",
      },
    );
  }
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new ConfigError(`openPostgres: schema "${schema}" must be one word of a-z 0-9 _`, { code: "schema_name" });
  }
  const where = `in the schema ${schema} of Postgres`; // the address may hold a password, so errors name the schema
  // a name in the address comes first
  const config = { application_name: "tenon", connectionString: url, connectionTimeoutMillis: connectionTimeoutMs };
  const pool = createPool({ config, where, maxConnections, connectionTimeoutMs, statementTimeoutMs });
  const root = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const db = root.withSchema(schema);
  let ready: Promise<void> | undefined;
  const open = async (): Promise<Kysely<Tables>> => {
    ready ??= migrate(root, schema).catch((error: unknown) => {
      ready = undefined; // the database may be there next time
      throw error;
    });
    await ready;
    return db;
  };
  const signals = createPostgresSignals({
    config,
    channel: besides(schema, "signals"),
    answerMs: connectionTimeoutMs,
    db: open,
  });
  const attach = shareSide(where, {
    db: open,
    async now(queries) {
      const { rows } = await sql<{ now: string }>`select ${CLOCK} as now`.execute(queries);
      return Number(rows[0]?.now);
    },
    clock: () => CLOCK,
    moment: () => MOMENT,
    wall: () => MOMENT,
    lockRows: true,
    async lock(trx, name) {
      // the database has one room for all locks: the schema keeps its own apart
      const key = sql`${MIGRATION_LOCK}, hashtext(${`${schema}.${name}`})`;
      // a process that stands still in the middle must not hold all the others up
      const limit = sql`set_config('idle_in_transaction_session_timeout', ${String(IDLE_MS)}, true)`;
      await sql`select ${limit}, pg_advisory_xact_lock(${key})`.execute(trx);
    },
    signals,
    async close() {
      await signals.close();
      await root.destroy();
      await pool.end(); // Kysely closes only what it has used
    },
  });
  return {
    attach,
    queue: (side) => createBossQueue(side, { schema: besides(schema, "jobs"), pool, lock: MIGRATION_LOCK }),
  };
}

/**
 * All stores in Postgres, for any number of machines, over one pool. Connects and migrates at first use; leases are counted by
 * the database's clock.
 * @throws ConfigError for an unknown option, a missing address, a schema name that is not one word or a time that is not positive
 * @example await using stores = openPostgres({ url: process.env.TENON_DATABASE_URL });
 */
export function openPostgres(options: PostgresOptions): Stores {
  checkOptions(options, OPTIONS, "openPostgres(options)");
  const leaseMs = checkLeaseMs(options.leaseMs ?? LEASE_MS, "openPostgres(options)");
  const { attach, queue } = connect(options);
  return createSqlStores(attach, leaseMs, queue);
}
