import assert from "node:assert/strict";
import { createClient, renderText } from "@tenon/client";
import { createServer } from "@tenon/server";
import { consulStub } from "../../test/consul.ts";

const agent = await consulStub();
const consulUrl = agent.url;

function kb(name: string) {
  const server = createServer({ name: "kb", version: "1.0.0", instructions: name, logSink: () => {} });
  server.tool("search", { annotations: { readOnlyHint: true } }, () => `${name} found it`);
  return server;
}
const servers = [kb("first"), kb("second"), kb("third")] as const;
const [first, second, third] = servers;
const at = await Promise.all(servers.map((server) => server.listen({ port: 0 })));
const [one, two, three] = at.map(({ url }) => url) as [string, string, string];

// #region replicas
const client = createClient({
  servers: {
    kb: { replicas: [one, two, { url: three, id: "spare", capabilities: ["tools.list", "tools.execute"] }] },
  },
});
const ask = (threadId: string) => client.callTool("kb", "search", {}, { runtime: { threadId } });

const before = renderText((await ask("thread-1")).content); // calls of one thread go to one replica
const again = renderText((await ask("thread-1")).content);
// #endregion
assert.equal(again, before);
assert.match(before, / found it$/);

// #region away
const gone = before.startsWith("first") ? first : before.startsWith("second") ? second : third;
await gone.close();
const after = renderText((await ask("thread-1")).content); // the next replica of this thread has it now

const [info] = client.servers();
const away = info?.replicas?.filter(({ health }) => health === "down");
// #endregion
assert.notEqual(after, before);
assert.equal(away?.length, 1);

// #region registry
import { consulRegistry, fileRegistry } from "@tenon/client/registry"; // mcpRegistry and staticRegistry as well

const registry = consulUrl ? consulRegistry({ url: consulUrl }) : fileRegistry("services.json");
const found = createClient({
  servers: { kb: { service: "kb", origins: ["http://127.0.0.1:*"] } },
  registry,
});

// #endregion

// #region register
import { consul } from "@tenon/server/register";

const server = kb("fourth");
await server.listen({ port: 0, register: consul({ url: consulUrl }) }); // there while it listens
// #endregion
await assert.doesNotReject(async () => {
  for (let n = 0; n < 100 && (found.servers()[0]?.replicas ?? []).length === 0; n++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});
assert.equal(renderText((await found.callTool("kb", "search")).content), "fourth found it");

// #region breaker
const careful = createClient({
  servers: { kb: { replicas: [one, two], breaker: { failures: 20, openMs: 60_000 } } },
  routing: { key: ({ context, threadId }) => (typeof context?.tenant === "string" ? context.tenant : threadId) },
});
// #endregion
assert.equal(careful.servers()[0]?.breaker, "closed");

await Promise.all([client.close(), found.close(), careful.close()]);
await registry.close();
await Promise.all([...servers, server].map((open) => open.close()));
assert.equal(agent.instances.size, 0);
await agent.close();
