import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "@tenon/server";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "tenon-docs-"));
const file = join(folder, "tenon.lock");
const server = createServer({ name: "mail", version: "1.0.0" });
server.tool("send", { description: "Sends a mail.", input: z.object({ to: z.string() }) }, () => "sent");
server.tool(
  "search",
  { description: "Finds mails.", annotations: { readOnlyHint: true, openWorldHint: false } },
  () => "none",
);
const { url } = await server.listen({ port: 0 });

// #region first
import { createClient } from "@tenon/client";

const client = createClient({
  servers: {
    mail: {
      url,
      grants: { tools: ["send", "search"], resources: ["mail://inbox/*"] },
      expectHosts: ["login.example.com"],
    },
  },
  pin: file, // "tenon.lock" beside your code
});
const tools = await client.listTools();
// #endregion
assert.deepEqual(
  tools.map(({ wireName }) => wireName),
  ["search", "send"],
);

// #region accept
import { acceptTools, diffTool, formatChanges, readLock } from "@tenon/client/trust";

const lock = await readLock(file);
for (const tool of tools) {
  const { wireName: name, description, inputSchema, annotations } = tool;
  const pinned = lock.servers[tool.server]?.tools[name];
  const now = { name, description, inputSchema, annotations: { ...annotations } };
  if (pinned) console.log(formatChanges(diffTool(pinned.definition, now)));
}
await acceptTools(file, tools); // as they are now

// #endregion

// #region review
import { reviewTools } from "@tenon/client/trust";

const careful = createClient({
  servers: { mail: { url } },
  pin: {
    file,
    onFirstUse: ({ server, tools, findings }) => {
      for (const { tool, kind, where, excerpt } of findings)
        console.log(`${server}/${tool}: ${kind} in ${where}: ${excerpt}`);
      const marked = new Set(findings.map(({ tool }) => tool));
      return tools.map(({ wireName }) => wireName).filter((name) => !marked.has(name));
    },
  },
});
// #endregion
assert.equal((await careful.listTools()).length, 2);
assert.deepEqual(reviewTools(tools), []);

// #region effects
const reader = createClient({ servers: { mail: { url, grants: { effects: ["readOnly"] } } } });
// #endregion
assert.deepEqual(
  (await reader.listTools()).map(({ wireName }) => wireName),
  ["search"],
);
await assert.rejects(reader.callTool("mail", "send", { to: "x" }), { code: "not_granted" });

// #region stdio
import { commandLineOf } from "@tenon/client/trust";

const converter = {
  command: "node",
  args: ["convert.js"],
  env: { LICENSE: "…" },
  sandbox: {
    container: "docker" as const,
    image: "node:22",
    mounts: [{ source: "/srv/pictures", target: "/data" }],
  },
};
const boxed = createClient({
  servers: { converter },
  pin: file,
  onFirstStart: ({ server, commandLine }) => confirm(`Start "${server}"? ${commandLine}`),
});
console.log(commandLineOf(converter));
// #endregion
function confirm(_question: string): boolean {
  return false;
}
assert.match(commandLineOf(converter), /^LICENSE=… docker run --rm --interactive --init --network none --cap-drop ALL/);
assert.deepEqual(await boxed.listTools(), []);
assert.equal(boxed.servers()[0]?.error?.code, "not_started");

// #region terminal
import { askInTerminal } from "@tenon/client/terminal";

const talking = createClient({
  servers: { mail: { url, expectHosts: ["login.example.com"] } },
  elicitation: (question, { server, signal }) => askInTerminal(question, { server, signal, language: "zh" }),
});
// #endregion

for (const one of [client, careful, reader, boxed, talking]) await one.close();
await server.close();
rmSync(folder, { recursive: true });
