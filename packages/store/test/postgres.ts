import pg from "pg";
import { afterAll, it } from "vitest";

/**
 * Defines tests on a schema of their own, and on a second one for processes that start together; both are dropped afterwards.
 * Without `TENON_TEST_DATABASE_URL` one skipped test says so.
 */
export function onPostgres(what: string, name: string, tests: (url: string, schema: string) => void): void {
  const url = process.env.TENON_TEST_DATABASE_URL;
  if (url === undefined) {
    it.skip(`${what} in Postgres: set TENON_TEST_DATABASE_URL to run them`, () => undefined);
    return;
  }
  const schema = `tenon_${name}_${process.pid}_${Date.now()}`;
  const admin = new pg.Pool({ connectionString: url, max: 1 });
  afterAll(async () => {
    for (const made of [schema, `${schema}_race`]) {
      await admin.query(`drop schema if exists ${made} cascade`);
      await admin.query(`drop schema if exists ${made}_jobs cascade`); // of pg-boss
    }
    await admin.end();
  });
  tests(url, schema);
}
