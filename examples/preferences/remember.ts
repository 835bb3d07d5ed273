import { SqliteStore } from "@tenon/agent/sqlite-store";

// the settings page, say: another program than the one that searches
const [file = "preferences.db"] = process.argv.slice(2);
await using store = new SqliteStore(file);
await store.put(["user_prefs"], "u_001", { language: "en", region: "US", limit: 2 });
await store.put(["user_prefs"], "u_002", { language: "zh", region: "CN", limit: 10 });
