import { redactor } from "@tenon/core/internal";
import { describe, expect, it } from "vitest";
import { clientOf, shop } from "../../test/shop.ts";
import type { Interceptor } from "../index.ts";
import { createClient, type ToolRuntime } from "../index.ts";
import { type CallLine, log } from "./log.ts";

describe("log", () => {
  it("writes one line per call, however it ends, without arguments or messages", async () => {
    const lines: CallLine[] = [];
    const server = await shop({ t: {}, bad: { work: () => ({ isError: true }) } });
    const client = clientOf(server.url, { interceptors: [log({ sink: (line) => lines.push(line) })] });
    await client.callTool("s", "t", { password: "hunter2" });
    await client.callTool("s", "bad");
    await client.callTool("s", "nope", { password: "hunter2" }).catch(() => {});
    expect(lines).toEqual([
      {
        at: expect.any(String),
        server: "s",
        tool: "t",
        callId: expect.stringMatching(/^call-\w+-1$/),
        ms: expect.any(Number),
        outcome: "ok",
      },
      expect.objectContaining({ tool: "bad", callId: expect.stringMatching(/^call-\w+-2$/), outcome: "tool_error" }),
      expect.objectContaining({
        tool: "nope",
        callId: expect.stringMatching(/^call-\w+-3$/),
        outcome: "error",
        code: "unknown_tool",
      }),
    ]);
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  it("shows arguments only as far as it is told", async () => {
    const lines: CallLine[] = [];
    const server = await shop({ t: {} });
    const write = (line: CallLine) => lines.push(line);
    const client = clientOf(server.url, { interceptors: [log({ sink: write, args: redactor() })] });
    await client.callTool("s", "t", { id: "A", password: "hunter2" });
    expect(lines[0]?.args).toEqual({ id: "A", password: "[redacted]" });
  });

  it("tells a call that waits for an answer, a message of another layer, and an exception apart", async () => {
    const lines: CallLine[] = [];
    const write = (line: CallLine) => lines.push(line);
    const bug: Interceptor = () => Promise.reject(new TypeError("bug"));
    await expect(
      clientOf("http://127.0.0.1:9", { interceptors: [log({ sink: write }), bug] }).callTool("s", "t"),
    ).rejects.toThrow("bug");
    const message: Interceptor<ToolRuntime, "message"> = async () => "message";
    const client = createClient({
      servers: { s: { url: "http://127.0.0.1:9" } },
      interceptors: [log({ sink: write }), message],
    });
    await client.callTool("s", "t");
    expect(lines.map(({ outcome, code }) => [outcome, code])).toEqual([
      ["error", "unexpected"],
      ["answered", undefined],
    ]);
  });

  it("never breaks a call", async () => {
    const server = await shop({ t: {} });
    const write = () => {
      throw new Error("disk full");
    };
    expect((await clientOf(server.url, { interceptors: [log({ sink: write })] }).callTool("s", "t")).isError).toBe(
      false,
    );
    expect(() => log({ sink: "file" as never })).toThrow("must be a function");
  });
});
