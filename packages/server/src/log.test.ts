import { describe, expect, it, vi } from "vitest";
import { createLog, type LogEntry, requestLog } from "./log.ts";
import { formatOf, prettyLine } from "./log-writer.ts";

const JWT = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl";

/** What a log wrote. */
function written(write: (log: ReturnType<typeof createLog>) => void): LogEntry[] {
  const entries: LogEntry[] = [];
  write(createLog("shop", "debug", (entry) => entries.push(entry)));
  return entries;
}

describe("a line of the server's own log", () => {
  it("is a JSON object on stderr, with its parts in order", () => {
    const out: string[] = [];
    const spy = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      out.push(String(text));
      return true;
    });
    try {
      createLog("shop", "info")("notice", "a thing", { level: "no", detail: 1, gone: undefined });
      createLog("shop", "info")("debug", "not written");
    } finally {
      spy.mockRestore();
    }
    expect(out).toHaveLength(1);
    const entry = JSON.parse(out[0] ?? "");
    expect(entry).toEqual({ time: expect.any(String), level: "notice", server: "shop", message: "a thing", detail: 1 });
    expect(out[0]).toMatch(/^\{"level":"notice","time":"[^"]+","server":"shop","message":"a thing","detail":1\}\n$/);
  });

  it("holds no token, password or key, wherever it stands", () => {
    const [entry] = written((log) =>
      log("error", `asked with Bearer ${JWT} and password=hunter2`, {
        authorization: "Basic amFuZTpodW50ZXIy",
        request: { headers: { cookie: "sid=77", "x-api-key": "k-1", accept: "*/*" }, apiKey: "k-2" },
        error: new Error(`refused ${JWT}`, { cause: "hunter2" }),
      }),
    );
    const text = JSON.stringify(entry);
    for (const secret of [JWT, "hunter2", "amFuZTpodW50ZXIy", "sid=77", "k-2"]) expect(text).not.toContain(secret);
    expect(entry).toMatchObject({ message: "asked with [redacted] and password=[redacted]" });
    expect(text).toContain('"accept":"*/*"');
  });

  it("says which request and which trace it belongs to", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const [of, other] = written((log) => {
      requestLog(log, { requestId: 7, meta: { traceparent } })("info", "of a trace", { more: 1 });
      requestLog(log, { requestId: "x", meta: { traceparent: "nonsense" } })("info", "of none");
    });
    expect(of).toMatchObject({ requestId: 7, traceId: "0af7651916cd43dd8448eb211c80319c", more: 1 });
    expect(other).not.toHaveProperty("traceId");
  });

  it("is words for a person at a terminal, whom no text of others can fool", () => {
    const entry: LogEntry = {
      time: "2026-11-30T10:11:12.345Z",
      level: "warning",
      server: "shop",
      message: "odd\u001b[2Jthing\nERROR all is lost",
      requestId: 7,
      reason: "two words",
      error: { message: "why", stack: "Error: why\n    at place" },
    };
    expect(prettyLine(entry)).toBe(
      '10:11:12 WARN  shop: oddthing ERROR all is lost  requestId=7 reason="two words"\n    Error: why\n        at place\n',
    );
  });

  it("looks as TENON_LOG_FORMAT says, else as suits who reads it", () => {
    expect([
      formatOf("json", true),
      formatOf("pretty", false),
      formatOf(undefined, true),
      formatOf("", undefined),
    ]).toEqual(["json", "pretty", "pretty", "json"]);
  });
});
