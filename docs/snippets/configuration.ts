import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "tenon-docs-"));
const file = join(folder, "mcp.json");
writeFileSync(
  file,
  `{
  // any file of Claude Desktop, Cursor or VS Code
  "inputs": [{ "id": "key", "type": "promptString", "description": "API key", "password": true }],
  "mcpServers": {
    "order": { "url": "https://orders.example.com/mcp", "headers": { "Authorization": "Bearer \${input:key}" } },
    "files": { "command": "node", "args": ["files.js", "\${workspaceFolder}"], "env": { "LOG": "\${LOG_LEVEL:-info}" } },
    "old": { "command": "node", "disabled": true },
  },
}`,
);
const askPerson = (_what: string | undefined): string => "secret";

// #region first
import { createClient } from "@tenon/client";
import { loadConfig } from "@tenon/client/config";

const config = await loadConfig(file, { input: ({ description }) => askPerson(description) });
for (const { message } of config.warnings) console.error(message);
const client = createClient(config.client);
// #endregion

assert.deepEqual(config.servers, {
  order: { url: "https://orders.example.com/mcp", headers: { Authorization: "Bearer secret" } },
  files: { command: "node", args: ["files.js", folder], env: { LOG: process.env.LOG_LEVEL || "info" } },
});
assert.deepEqual([config.disabled, config.warnings], [["old"], []]);

// #region errors
import { parseConfig } from "@tenon/client/config";

const text = `{
  "mcpServers": {
    "order": { "url": "https://orders.example.com/mcp", "headrs": {} }
  }
}`;
const problem = await parseConfig(text, { file: "mcp.json" }).catch((error: Error) => error.message);
assert.equal(problem, 'mcp.json:3: mcpServers.order.headrs is no known key; did you mean "headers"?');
// #endregion

await client.close();
rmSync(folder, { recursive: true });
