import { describe, expect, it } from "vitest";
import { alice, ask, call } from "../../test/ask.ts";
import { createServer, type LogEntry, ToolError } from "../index.ts";
import { log } from "./log.ts";

describe("log", () => {
  it("writes one line per request: what, who, how long and how it ended", async () => {
    const logged: LogEntry[] = [];
    const server = createServer({ name: "test", version: "1", logSink: (entry) => logged.push(entry) })
      .use(log())
      .tool("good", {}, () => "secret result")
      .tool("bad", {}, () => {
        throw new ToolError("no");
      })
      .tool("asks", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes"])).action);
    await call(server, "good", { secret: "argument" }, { caller: alice });
    await call(server, "bad");
    await call(server, "asks");
    await call(server, "unknown");
    await ask(server, "tools/list");
    expect(logged.map(({ level, message, name, caller, outcome }) => [level, message, name, caller, outcome])).toEqual([
      ["info", "tools/call ok", "good", "alice", "ok"],
      ["warning", "tools/call error", "bad", undefined, "error"],
      ["info", "tools/call asked", "asks", undefined, "asked"],
      ["warning", "tools/call refused", "unknown", undefined, "refused"],
      ["info", "tools/list ok", undefined, undefined, "ok"],
    ]);
    expect(logged[0]?.durationMs).toEqual(expect.any(Number));
    expect(JSON.stringify(logged)).not.toContain("secret");
  });
});
