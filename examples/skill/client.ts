import { createHash } from "node:crypto";
import { createClient } from "@tenon/client";
import { connect } from "@tenon/server/testing";
import { z } from "zod";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";
import server from "./server.ts";

// A host that knows the extension asks for the entries and reads a skill's files when a task calls for them.
await using host = await connect(server);
check("the extension is offered", host.server.capabilities.extensions, {
  "io.modelcontextprotocol/skills": { directoryRead: true },
});
const Listed = z.object({
  skills: z.array(
    z.object({
      uri: z.string(),
      frontmatter: z.looseObject({ name: z.string(), description: z.string() }),
      resources: z.array(z.object({ uri: z.string(), digest: z.string(), size: z.number() })),
    }),
  ),
});
const [entry] = Listed.parse(await host.request("skills/list")).skills;
console.log(`${entry?.frontmatter.name}: ${entry?.frontmatter.description}`);
check("one skill, with what it is for", entry?.frontmatter.description, /before refunding/);
check(
  "and its files",
  entry?.resources.map(({ uri }) => uri),
  ["skill://refund-check/SKILL.md", "skill://refund-check/references/LIMITS.md"],
);
for (const { uri, digest, size } of entry?.resources ?? []) {
  const [content] = await host.readResource(uri);
  const text = content && "text" in content ? content.text : "";
  const sha256 = `sha256:${createHash("sha256").update(text).digest("hex")}`;
  check(`${uri} is what was announced`, [sha256, Buffer.byteLength(text)], [digest, size]);
}

// A host that does not know it finds the same file among the resources.
await using client = createClient({ servers: { refunds: child(import.meta) } });
const [skill] = await client.readResources("refunds");
check(
  "a plain resource for everybody else",
  [skill?.uri, skill?.mimeType],
  ["skill://refund-check/SKILL.md", "text/markdown"],
);
check("with the instructions", skill?.asString(), /only delivered orders are refunded/);
