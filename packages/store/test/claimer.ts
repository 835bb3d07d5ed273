import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";

// one of several processes that want the same keys: prints those it won
const [kind, where = "", schema = ""] = process.argv.slice(2);
const stores = kind === "sqlite" ? openSqlite({ path: where }) : openPostgres({ url: where, schema });
const store = stores.outcomes;
for (let i = 0; i < 50; i++) {
  const key = `key-${i}`;
  const claim = await store.claim({ key, digest: "d", ttlMs: 60_000 });
  if (claim.state !== "yours") continue;
  await store.finish(claim.lease, process.pid, { ttlMs: 60_000 });
  console.log(key);
}
await stores.close();
