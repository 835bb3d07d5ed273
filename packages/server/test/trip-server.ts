import { createSqliteStore } from "@tenon/store/sqlite";
import { trip } from "./trip.ts";

// one process of the matrix: `trip-server.ts <stdio|http> <folder>`, keys in TENON_STATE_KEYS
const [transport, folder = "."] = process.argv.slice(2);
const server = trip(folder, { store: createSqliteStore(`${folder}/outcomes.db`, { leaseMs: 600 }), replicas: true });
if (transport === "stdio") {
  await server.stdio();
  process.exit(0);
}
console.log((await server.listen({ port: 0 })).url);
