import { createClient, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

await using client = createClient({ servers: { sloppy: child(import.meta) } });
const call = async (tool: string, args: Record<string, unknown> = {}) => {
  try {
    const result = await client.callTool("sloppy", tool, args);
    return `${result.isError ? "error: " : ""}${renderText(result.content)}`;
  } catch (error) {
    return error instanceof Error && "code" in error ? `${error.code}: ${error.message}` : String(error);
  }
};

const tools = await client.listTools();
check(
  "what is usable is used, over all pages",
  tools.map(({ wireName }) => wireName),
  ["admin.tools/清单", "dies", "failing", "hologram", "huge", "last", "strange", "structured", "wrong_output"],
);
check(
  "names are legal",
  tools.filter(({ name }) => !/^[A-Za-z0-9_-]{1,64}$/.test(name)),
  [],
);

const problems = client.servers()[0]?.problems ?? [];
for (const { tool, reason } of problems) console.log(`  ${tool}: ${reason}`);
check(
  "what is not is reported",
  problems.map(({ tool }) => tool),
  ["no_schema", "twice", "strange"],
);

check("a strange schema does not forbid the tool", await call("strange", { p: 1 }), "called strange");
check(
  "two tools of one name are never mixed up",
  await call("twice"),
  /^ambiguous_tool: .*"Reads a file" and "Deletes a file"/,
);
check("the wire has the original name", await call("admin.tools/清单"), "called admin.tools/清单");
check("structured content alone is text for a model", await call("structured"), '{"a":1}');
check(
  "a wrong output names the path",
  await call("wrong_output"),
  /^error: .*total: must be a number, got "three"[\s\S]*three items$/,
);
check("an error keeps its text", await call("failing"), "error: rate limited");
check("unknown content is described", await call("hologram"), /unknown type "hologram"/);
check("a huge answer fails alone", await call("huge"), /^too_large: .*result too large \(limit \d+ bytes\)/);
check("the next call works", await call("last"), "called last");
check("a death in the middle is told", await call("dies"), /^lost: .*The request may have taken effect/);
check("and the next call has a new process", await call("last"), "called last");

check("a list that never ends is cut", await client.listPrompts(), []);
const cut = client.servers()[0]?.problems.find(({ tool }) => tool === "prompts/list");
check("and that is reported", cut?.reason, /never ends prompts\/list: cursor "again" came again/);

await client.close();
