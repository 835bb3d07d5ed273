import { openPostgres } from "../src/postgres.ts";
import { openSqlite } from "../src/sqlite.ts";

// a process that listens and forgets to close: what is open must not keep it alive
const [kind, where = "", schema = ""] = process.argv.slice(2);
const stores = kind === "sqlite" ? openSqlite({ path: where }) : openPostgres({ url: where, schema });
stores.tasks.onDue(["server"], () => undefined);
await new Promise<void>((resolve) => {
  stores.events.subscribe("topic", () => resolve());
  void stores.events.publish("topic", 1);
  void stores.tasks.take(["server"], "me");
  setTimeout(() => console.log("nothing heard"), 10_000).unref();
});
console.log("heard");
