import { ProtocolError } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createServer, type LogEntry, type TenonServer, ToolError } from "../src/index.ts";
import { ask, call, said } from "./ask.ts";

const cycle: Record<string, unknown> = {};
cycle.self = cycle;

let lines: string[];
let server: TenonServer;

beforeEach(() => {
  lines = [];
  const logSink = (entry: LogEntry): void => void lines.push(JSON.stringify(entry));
  server = createServer({ name: "odd", version: "1.0.0", logSink });
});
afterEach(() => server.close());

describe("what JSON cannot carry", () => {
  it.each([
    ["a bigint", { order: 1n }],
    ["a cycle", cycle],
  ])("in the data of a ToolError (%s) does not keep its message from the model", async (_, data) => {
    server.tool("t", { idempotent: true }, () => {
      throw new ToolError("no such order", { data });
    });
    for (const _meta of [{}, { "dev.tenon/idempotency-key": "k" }]) {
      const reply = await ask(server, "tools/call", { name: "t", _meta });
      expect([said(reply), reply.result?.isError]).toEqual(["no such order", true]);
    }
    expect(lines.join()).toContain("it went out without");
  });
  it("in the data of an error that middleware throws is left out", async () => {
    server.tool("t", {}, () => "never");
    server.use(({ method }) => {
      if (method === "tools/list") throw new ProtocolError(-32602, "not now", { left: 1n });
      throw new ToolError("not you", { data: cycle });
    });
    expect((await ask(server, "tools/list")).error).toEqual({ code: -32602, message: "not now" });
    expect(said(await call(server, "t"))).toBe("not you");
  });
  it("in a result that middleware made is an error at once, not a call without an answer", async () => {
    server.tool("t", {}, () => "fine");
    server.use(async (_request, next) => ({ ...(await next()), structuredContent: { n: 1n } }));
    expect(said(await call(server, "t"))).toMatch(/^Request tools\/call failed \(reference \w+\)$/);
    expect(lines.join()).toContain("the result of middleware.structuredContent.n is a bigint");
  });
  it("in a log line nobody awaits is said in words there", async () => {
    server.tool("t", {}, (_, ctx) => {
      void ctx.log.info("counted", { extra: { n: 1n, m: 2 } });
      void ctx.log.info("linked", { extra: cycle });
      return "done";
    });
    expect(said(await call(server, "t"))).toBe("done");
    expect(lines[0]).toContain('"n":"(value is a bigint, which JSON cannot carry');
    expect(lines[0]).toContain('"m":2');
    expect(lines[1]).toContain("a cycle");
  });
});

describe("a thrown value without a text", () => {
  it("is masked like any other", async () => {
    const thrown = [
      Object.create(null),
      {
        toString() {
          throw new Error("no text");
        },
      },
    ];
    for (const [n, value] of thrown.entries()) {
      server.tool(`t${n}`, {}, () => {
        throw value;
      });
      expect(said(await call(server, `t${n}`))).toMatch(/^Tool t\d failed \(reference \w+\)$/);
    }
  });
});

describe("a log sink that fails", () => {
  it("does not fail the call that is logged", async () => {
    const broken = createServer({
      name: "odd",
      version: "1.0.0",
      logSink: () => {
        throw new Error("disk full");
      },
    });
    broken.tool("t", {}, () => {
      throw new Error("inside");
    });
    expect(said(await call(broken, "t"))).toMatch(/^Tool t failed \(reference \w+\)$/);
    await broken.close();
  });
});
