import { describe, expect, it } from "vitest";
import { z } from "zod";
import { call, said } from "../../test/ask.ts";
import { createServer, type LogEntry, type ServerOptions } from "../index.ts";

function make(options: Partial<ServerOptions> = {}) {
  const lines: LogEntry[] = [];
  const more = { logLevel: "debug" as const, logSink: (line: LogEntry) => lines.push(line), ...options };
  const server = createServer({ name: "s", version: "1.0.0", ...more });
  server.tool("get", { input: z.object({ id: z.string() }) }, ({ id }) => id);
  server.tool("open", { input: z.looseObject({ id: z.string() }) }, (args) => Object.keys(args).join());
  server.tool("none", {}, () => "none");
  const leftOut = () => lines.flatMap(({ message, names }) => (message.includes("left out") ? [names] : []));
  return { server, lines, leftOut };
}

describe("arguments that are left out because the schema does not name them", () => {
  it("are named in the server's log at level debug, once per tool and name, without their values", async () => {
    const { server, lines, leftOut } = make();
    for (const args of [
      { id: "1" },
      { id: "1", idd: "hunter2" },
      { id: "1", idd: "x", more: 1 },
      { id: "1", idd: 2 },
    ]) {
      expect(said(await call(server, "get", args))).toBe("1");
    }
    await call(server, "none", { idd: 1 });
    expect(leftOut()).toEqual([["idd"], ["more"], ["idd"]]);
    expect(lines[0]).toMatchObject({
      level: "debug",
      message: "Tool get: arguments that its schema does not name were left out",
      todo: 'unknownArguments: "reject" refuses such calls instead',
    });
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  it("fill no log, however many names a caller makes up", async () => {
    const { server, leftOut } = make();
    for (let n = 0; n < 50; n++) await call(server, "get", { id: "1", [`${n}`.padStart(5_000, "x")]: 1 });
    await call(server, "get", { id: "1", ...Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`y${n}`, 1])) });
    const names = leftOut().flat() as string[];
    expect(names.length).toBeLessThanOrEqual(20);
    expect(Math.max(...names.map(({ length }) => length))).toBeLessThanOrEqual(100);
  });

  it("are not spoken of where the schema takes any, the call is refused, or nobody listens", async () => {
    const { server, lines, leftOut } = make();
    await call(server, "open", { id: "1", more: 1 });
    await call(server, "get", { more: 1 });
    expect(leftOut()).toEqual([]);
    const strict = make({ unknownArguments: "reject" });
    expect(said(await call(strict.server, "get", { id: "1", idd: 1 }))).toContain("idd: unknown argument");
    expect(strict.leftOut()).toEqual([]);
    const quiet = make({ logLevel: "info" });
    await call(quiet.server, "get", { id: "1", idd: 1 });
    expect([...lines, ...quiet.lines]).toEqual([]);
  });
});
