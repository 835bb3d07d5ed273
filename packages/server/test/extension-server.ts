import { z } from "zod";
import { type ConnectedClient, createServer, extensionMethod, type TenonServer, ToolError } from "../src/index.ts";

/** Sessions the audit extension heard of. */
export const connections: ConnectedClient[] = [];

/** A server with two extensions: one open, one that asks for a declaration. */
export function audited(): TenonServer {
  const server = createServer({ name: "audited", version: "1.0.0", logSink: () => undefined });
  server.extension({
    id: "com.example/audit",
    settings: { retentionDays: 30 },
    onConnect: (connection) => void connections.push(connection),
    methods: {
      "audit/list": extensionMethod({
        params: z.object({ since: z.int() }),
        handler: ({ since }, exchange) => ({ since, era: exchange.era, declared: exchange.declared ?? null }),
      }),
      "audit/refuse": {
        handler: () => {
          throw new ToolError("There is no entry 7", { data: { id: 7 } });
        },
      },
      "audit/leak": {
        handler: () => {
          throw new Error("password=hunter2");
        },
      },
      "audit/modern": { eras: ["modern"], handler: () => ({ ok: true }) },
    },
  });
  server.extension({
    id: "com.example/strict",
    requires: "declared",
    methods: { "strict/do": { handler: () => undefined } },
  });
  return server;
}

const server = audited();
await server.run(import.meta);
