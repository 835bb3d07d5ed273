/**
 * Loaded before a child's own program. Switches one safeguard off, from outside, where the harness is asked to show that it would
 * be missed: in the statements that go to the database, or in the requests that come in.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";

/** What becomes of a statement: another one in its place, or nothing at all with some values, reported as done. */
type Rewritten = { readonly text: string } | { readonly skip: (values: readonly unknown[]) => boolean } | undefined;
type Rewrite = (text: string) => Rewritten;

/** Says to the harness that the safeguard was there to be switched off. */
let bitten = false;
function bite(): void {
  if (bitten) return;
  bitten = true;
  writeFileSync(join(process.env.TENON_CHAOS ?? "", "sabotage"), "it was applied\n");
}

/** Looks at every statement before it is sent to SQLite or Postgres. */
function intercept(rewrite: Rewrite): void {
  const prepare = Database.prototype.prepare;
  Database.prototype.prepare = function (this: Database.Database, source: string) {
    const judged = rewrite(source);
    if (judged === undefined) return prepare.call(this, source);
    if ("text" in judged) {
      bite();
      return prepare.call(this, judged.text);
    }
    const statement = prepare.call(this, source);
    const run = statement.run.bind(statement) as (...values: unknown[]) => Database.RunResult; // it takes any
    statement.run = (...values: unknown[]) => {
      if (!judged.skip(values.flat())) return run(...values);
      bite();
      return { changes: 1, lastInsertRowid: 0n as unknown as number }; // Kysely makes a bigint of it
    };
    return statement;
  } as typeof prepare;

  type Query = (this: pg.Client, config: unknown, values?: unknown, ...rest: unknown[]) => unknown;
  const query = pg.Client.prototype.query as unknown as Query; // whichever of its forms
  const replaced: Query = function (config, values, ...rest) {
    const judged = typeof config === "string" ? rewrite(config) : undefined;
    if (judged === undefined) return query.call(this, config, values, ...rest);
    if ("text" in judged) {
      bite();
      return query.call(this, judged.text, values, ...rest);
    }
    if (!judged.skip(Array.isArray(values) ? values : [])) return query.call(this, config, values, ...rest);
    bite();
    return Promise.resolve({ command: "INSERT", rowCount: 1, rows: [] });
  };
  pg.Client.prototype.query = replaced as unknown as typeof pg.Client.prototype.query;
}

/** A condition that is always true, with the same parameters. */
const always = (text: string): string =>
  text.replaceAll(
    /(?:"\w+"\.)*"(?:run_)?(fence|holder)" = (\?|\$\d+)/g,
    (_, column: string, value: string) => `cast(${value} as ${column === "fence" ? "bigint" : "text"}) is not null`,
  );

const SABOTAGE: Readonly<Record<string, () => void>> = {
  /** Calls come in as if they had no key: a repeated one is a new one. */
  idempotency() {
    const parse = JSON.parse;
    const KEY = "dev.tenon/idempotency-key";
    JSON.parse = (text, reviver) => {
      const value = parse(text, reviver);
      const meta = typeof text === "string" && text.includes(KEY) ? value?.params?._meta : undefined;
      if (meta?.[KEY] !== undefined) {
        delete meta[KEY];
        bite();
      }
      return value;
    };
  },
  /** Results of steps are not kept. */
  journal() {
    intercept((text) =>
      /insert into (?:"\w+"\.)?"tenon_(?:task_steps|outcome_parts)"/.test(text) ? { skip: () => true } : undefined,
    );
  },
  /** Whoever asks for a lease gets it, and whoever lost one goes on. */
  lease() {
    intercept((text) => {
      if (!text.includes("tenon_leases") && !text.includes("run_fence")) return undefined;
      const where = text.lastIndexOf(" set ") < 0 ? 0 : text.indexOf(" where ", text.lastIndexOf(" set "));
      if (where < 0) return undefined;
      const after = always(text.slice(where))
        .replaceAll(/"expires_at" <= /g, '"expires_at" * 0 <= ')
        .replaceAll(/"expires_at" > /g, '"expires_at" * 0 > ');
      const rewritten = text.slice(0, where) + after;
      return rewritten === text ? undefined : { text: rewritten };
    });
  },
  /** That a call is about to leave is not written down. */
  audit() {
    intercept((text) =>
      /insert into (?:"\w+"\.)?"tenon_audit"/.test(text) ? { skip: (values) => values.includes("intent") } : undefined,
    );
  },
};

SABOTAGE[process.env.TENON_CHAOS_SABOTAGE ?? ""]?.();
