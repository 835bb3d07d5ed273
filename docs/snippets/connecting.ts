import assert from "node:assert/strict";
import { createClient, renderText } from "@tenon/client";
import server from "./entry.ts";

const { url, close } = await server.listen({ port: 0 });
const token = "example";

// #region open
const client = createClient({
  servers: {
    clock: { url, headers: { Authorization: `Bearer ${token}` } },
    worker: {
      command: "node",
      args: [...process.execArgv, "docs/snippets/entry.ts"],
      env: { LOG: "1" },
      connectTimeoutMs: 20_000,
    },
    later: { url: "http://127.0.0.1:9/mcp" }, // nobody is there yet
  },
  events: {
    onCatalogChanged: ({ server }) => console.error(`the tools of ${server} changed`),
    onLog: ({ level, data }, { server }) => console.error(server, level, data),
  },
});

const tools = await client.listTools(); // of the servers that are there; all are asked at once
const down = client.servers().filter(({ health }) => health === "down");
// #endregion
assert.deepEqual([...new Set(tools.map(({ server }) => server))], ["clock", "worker"]);
assert.ok(down.some(({ server, error }) => server === "later" && error?.code === "unreachable"));

// #region call
const result = await client.callTool(
  "clock",
  "opened",
  {},
  {
    timeoutMs: 20_000, // without an answer or a word of progress
    totalTimeoutMs: 300_000, // with them
    headers: { "X-Request": "7" }, // for this call only
    signal: AbortSignal.timeout(60_000), // tells the server that nobody waits any more
  },
);
// #endregion
assert.equal(renderText(result.content), "1970-01-01T00:00:00.000Z");
// #region close
const short = createClient({ servers: { clock: { url } } });
try {
  await short.callTool("clock", "opened");
} finally {
  await short.close(); // what `await using short = …` does by itself
}
// #endregion
await client.close();
await close();
await server.close();
