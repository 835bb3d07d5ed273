import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ask, call } from "../../test/ask.ts";
import { createServer, type LogEntry } from "../index.ts";
import { timing } from "./timing.ts";

describe("timing", () => {
  it.each(["modern", "legacy"] as const)("says on each result how long it took (%s)", async (era) => {
    const logged: LogEntry[] = [];
    const server = createServer({
      name: "test",
      version: "1",
      logLevel: "debug",
      logSink: (entry) => logged.push(entry),
    })
      .use(timing())
      .tool("slow", {}, async () => {
        await sleep(30);
        return { content: [{ type: "text", text: "x" }], _meta: { kept: true } };
      });
    const { result } = await call(server, "slow", {}, { era });
    const meta = result?._meta as Record<string, unknown>;
    expect(meta.kept).toBe(true);
    expect(meta["dev.tenon/duration-ms"]).toBeGreaterThanOrEqual(25);
    expect((await ask(server, "tools/list", {}, { era })).result?._meta).toHaveProperty(["dev.tenon/duration-ms"]);
    expect(logged.map(({ level, message }) => `${level} ${message}`)).toEqual([
      expect.stringMatching(/^debug tools\/call took [\d.]+ ms$/),
      expect.stringMatching(/^debug tools\/list took [\d.]+ ms$/),
    ]);
  });
});
