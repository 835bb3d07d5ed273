import { ConfigError, codeOf, messageOf } from "@tenon/core";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { type Place, SCHEMA } from "./place.ts";
import { type DeskDatabase, type DeskTables, historyOf } from "./tables.ts";

/** Connections of one process for its own tables. */
const CONNECTIONS = 5;
/** Milliseconds to wait for a connection: a database that is away is an error, not a wait without an end. */
const CONNECT_MS = 10_000;
/** What everybody locks who makes something in the schema, `@tenon/store` too: two that make it at once would collide. */
const MIGRATION_LOCK = 0x74656e6f;

/** A pool on the place's database. @throws ConfigError `code: "database"` when the address is none of Postgres */
export function openPool({ url = "" }: Place, max = CONNECTIONS): pg.Pool {
  if (!/^postgres(ql)?:$/.test(URL.parse(url)?.protocol ?? "")) {
    // it may hold a password, so it is not shown
    throw new ConfigError("--database (or TENON_DATABASE_URL) expects an address like postgres://user@host:5432/name", {
      code: "database",
    });
  }
  const pool = new pg.Pool({ connectionString: url, max, connectionTimeoutMillis: CONNECT_MS });
  pool.on("error", () => undefined); // an idle connection ended: the next query opens another, or says why it cannot
  // one that is in use and breaks between two queries would end the process: the next query says so
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** The name of the schema as it may stand in SQL. @throws ConfigError `code: "schema_name"` */
export function schemaOf({ schema = SCHEMA }: Place): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return schema;
  throw new ConfigError(`--schema "${schema}" must be one word of a-z 0-9 _, at most 63 characters`, {
    code: "schema_name",
  });
}

/**
 * Runs `work` while nobody else makes anything in the schema.
 * @throws ConfigError `code: "database"` when the database cannot be reached
 */
export async function alone(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect().catch((cause: unknown) => {
    const todo = codeOf(cause) === "3D000" ? "; make it first, with createdb" : ""; // SQLSTATE: no such database
    throw new ConfigError(`The database of --database cannot be reached: ${messageOf(cause)}${todo}`, {
      code: "database",
      cause,
    });
  });
  try {
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await work(client);
    await client.query("select pg_advisory_unlock($1)", [MIGRATION_LOCK]);
    client.release();
  } catch (error) {
    client.release(true); // the lock goes with the connection
    throw error;
  }
}

async function migrate(client: pg.PoolClient, schema: string): Promise<void> {
  await client.query(`create schema if not exists ${schema}`);
  await client.query("begin");
  await client.query(`set local search_path to ${schema}`);
  await client.query("create table if not exists desk_migrations (name text primary key, at text not null)");
  const { rows } = await client.query<{ name: string }>("select name from desk_migrations");
  const done = new Set(rows.map(({ name }) => name));
  for (const { name, statements } of historyOf("postgres")) {
    if (done.has(name)) continue;
    for (const statement of statements) await client.query(statement);
    await client.query("insert into desk_migrations values ($1, $2)", [name, new Date().toISOString()]);
  }
  await client.query("commit");
}

/** The desk's own tables in Postgres. Connects at first use. @throws ConfigError `code: "database"`, `"schema_name"` */
export function openPostgresDesk(place: Place): DeskDatabase {
  const schema = schemaOf(place);
  const pool = openPool(place);
  const root = new Kysely<DeskTables>({ dialect: new PostgresDialect({ pool }) });
  let ready: Promise<void> | undefined;
  return {
    db: root.withSchema(schema),
    lockRows: true,
    async ready() {
      ready ??= alone(pool, (client) => migrate(client, schema)).catch((error: unknown) => {
        ready = undefined; // the database may be there next time
        throw error;
      });
      await ready;
    },
    async close() {
      await root.destroy();
      if (!pool.ended) await pool.end(); // Kysely closes only what it has used
    },
  };
}
