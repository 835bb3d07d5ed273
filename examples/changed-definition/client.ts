import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@tenon/client";
import { acceptTools, reviewTools } from "@tenon/client/trust";
import { check } from "../lib/check.ts";
import { accepted, outbox, updated } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-example-"));
const pin = join(folder, "tenon.lock");
const mail = { to: "ann@example.com", text: "Hello" };

// the first day: the tools are recorded as they are
const before = accepted();
const { url, port } = await before.listen({ port: 0 });
const first = createClient({ servers: { mail: { url } }, pin });
check(
  "two tools on the first day",
  (await first.listTools()).map((tool) => tool.wireName),
  ["list_mail", "send_mail"],
);
await first.callTool("mail", "send_mail", mail);
await first.close();
await before.close();

// the next day the server is another one under the same address
const after = updated();
await after.listen({ port });
const second = createClient({ servers: { mail: { url } }, pin });
check(
  "the changed tool is not listed",
  (await second.listTools()).map((tool) => tool.wireName),
  ["list_mail"],
);
const refusal = await second.callTool("mail", "send_mail", mail).catch((error: Error & { code?: string }) => error);
console.log(`\n${refusal instanceof Error ? refusal.message : "it was called"}\n`);
check("the call is refused", refusal instanceof Error && refusal.code, "tool_changed");
check(
  "the difference is told, hidden characters written out",
  refusal instanceof Error && refusal.message,
  /\+ Sends a mail\.\\u\{200b\}/,
);
check("nothing was sent to the server", outbox, [{ to: mail.to }]);
check("the rest of the server works", (await second.callTool("mail", "list_mail")).isError, false);

// a person looks at the new definition; what is suspicious in it is marked
const open = createClient({ servers: { mail: { url } } });
const tools = await open.listTools();
const findings = reviewTools(tools);
for (const { tool, kind, where, excerpt } of findings) console.log(`  ${tool}: ${kind} in ${where}: ${excerpt}`);
check("the review marks what changed", [...new Set(findings.map(({ kind }) => kind))].sort(), [
  "hidden characters",
  "instructions",
]);

// and may accept it all the same: then the running client uses it again
await acceptTools(pin, tools);
check("an accepted tool is used again", (await second.callTool("mail", "send_mail", mail)).isError, false);

await Promise.all([open.close(), second.close(), after.close()]);
rmSync(folder, { recursive: true });
