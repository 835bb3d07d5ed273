// Writes twenty values into the store that others write to at the same time.
import { SqliteStore } from "../src/sqlite-store/sqlite-store.ts";

const store = new SqliteStore(process.argv[2] ?? "");
for (let i = 0; i < 20; i++) await store.put(["n", String(process.pid)], `k${i}`, { i });
await store.stop();
