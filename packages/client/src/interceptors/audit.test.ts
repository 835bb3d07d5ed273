import { META } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import { describe, expect, it, vi } from "vitest";
import { modern } from "../../test/servers.ts";
import { clientOf, shop } from "../../test/shop.ts";
import { type CallDriver, createClient, type Interceptor } from "../index.ts";
import { type AuditIntent, type AuditOutcome, audit } from "./audit.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

type Entry = AuditIntent | AuditOutcome;

describe("audit", () => {
  it("writes an intent before a call leaves and an outcome after it, linked by the call's id", async () => {
    const entries: Entry[] = [];
    const runsAtIntent: unknown[] = [];
    const server = await shop({ t: {} });
    const sink = (entry: Entry) => {
      entries.push(entry);
      if (entry.kind === "intent") runsAtIntent.push(server.runs.t);
    };
    const actor = ({ runtime }: { runtime: { context?: unknown } }) => runtime.context;
    const client = clientOf(server.url, { interceptors: [audit({ sink, actor })] });
    const runtime = { context: { user: "ann" }, threadId: "th", toolCallId: "tc" };
    await client.callTool("s", "t", { password: "p" }, { runtime });
    const base = {
      callId: expect.stringMatching(/^call-\w+-1$/),
      pass: 1,
      server: "s",
      tool: "t",
      at: expect.any(String),
    };
    expect(entries).toEqual([
      {
        kind: "intent",
        ...base,
        argsDigest: digest({ password: "p" }),
        actor: { user: "ann" },
        threadId: "th",
        toolCallId: "tc",
      },
      { kind: "outcome", ...base, ms: expect.any(Number), outcome: "ok" },
    ]);
    expect(runsAtIntent).toEqual([undefined]);
    expect(JSON.stringify(entries)).not.toContain('"p"');
  });

  it("shows arguments only cleaned, and passes the outcome as it is", async () => {
    const entries: Entry[] = [];
    const blocks = {
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
      structuredContent: { n: 1 },
      isError: true,
    };
    const server = await shop({ t: { work: () => blocks } });
    let inner: unknown;
    const look: Interceptor = async (request, next) => {
      const outcome = await next(request);
      inner = outcome;
      return outcome;
    };
    const sink = { intent: (entry: AuditIntent) => entries.push(entry), outcome: (e: AuditOutcome) => entries.push(e) };
    const client = clientOf(server.url, { interceptors: [audit({ sink, redact: {} }), look] });
    const result = await client.callTool("s", "t", { id: "A", password: "p" });
    expect(result).toBe(inner);
    expect(result).toMatchObject({ content: blocks.content, structured: { n: 1 }, isError: true });
    expect(entries).toMatchObject([
      { kind: "intent", args: { id: "A", password: "[redacted]" } },
      { kind: "outcome", outcome: "tool_error" },
    ]);
  });

  it("drops no failure: errors, exceptions, cancelled calls, and each sending of a repeated one", async () => {
    const entries: Entry[] = [];
    const sink = (entry: Entry) => entries.push(entry);
    const bug: Interceptor = () => Promise.reject(new TypeError("token=abc broke it"));
    await clientOf("http://127.0.0.1:9", { interceptors: [audit({ sink }), bug] })
      .callTool("s", "t")
      .catch(() => {});
    const again = retry({ maxAttempts: 2, initialDelayMs: 1, maxDelayMs: 2 });
    await clientOf("http://127.0.0.1:9", { interceptors: [again, audit({ sink })] })
      .callTool("s", "t")
      .catch(() => {});
    const hang: Interceptor = (request) =>
      new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(new Error("stopped"))));
    await clientOf("http://127.0.0.1:9", { interceptors: [audit({ sink }), hang] })
      .callTool("s", "t", {}, { signal: AbortSignal.timeout(50) })
      .catch(() => {});
    const outcomes = entries.filter((entry): entry is AuditOutcome => entry.kind === "outcome");
    expect(outcomes.map(({ pass, outcome, error }) => [pass, outcome, error?.code])).toEqual([
      [1, "error", "unexpected"],
      [1, "error", "unreachable"],
      [2, "error", "unreachable"],
      [1, "error", "unexpected"],
    ]);
    expect(outcomes[0]?.error?.message).toBe("token=[redacted] broke it");
    expect(entries).toHaveLength(8);
  });

  it("is told how a call ended although a layer inside hangs", async () => {
    const entries: Entry[] = [];
    const sink = (entry: Entry) => entries.push(entry);
    const hang: Interceptor = () => new Promise(() => {});
    const url = "http://127.0.0.1:9";
    const outcomes = () => entries.filter(({ kind }) => kind === "outcome");
    const signal = AbortSignal.timeout(30);
    await expect(
      clientOf(url, { interceptors: [audit({ sink }), hang] }).callTool("s", "t", {}, { signal }),
    ).rejects.toMatchObject({ code: "cancelled" });
    await vi.waitFor(() => expect(outcomes()).toMatchObject([{ outcome: "error", error: { code: "cancelled" } }]));
    const limited = clientOf(url, { interceptors: [timeout({ timeoutMs: 30 }), audit({ sink }), hang] });
    await expect(limited.callTool("s", "t")).rejects.toMatchObject({ code: "timeout" });
    await vi.waitFor(() => expect(outcomes()).toHaveLength(2));
  });

  it("writes down a suspended call as suspended", async () => {
    const server = await modern();
    try {
      const entries: Entry[] = [];
      await using client = createClient({
        servers: { s: { url: server.url } },
        elicitation: "interrupt",
        interceptors: [audit({ sink: (entry) => entries.push(entry) })],
      });
      const driver: CallDriver = {
        leg: (send) => send(),
        answer: async () => {
          throw new Error("later");
        },
      };
      await expect(client.callTool("s", "ask", {}, { driver })).rejects.toThrow("later");
      expect(entries.at(-1)).toMatchObject({ kind: "outcome", outcome: "suspended" });
      expect(entries.at(-1)).not.toHaveProperty("error");
    } finally {
      await server.kill();
    }
  });

  it("refuses a call whose intent cannot be written, unless it is told to go on", async () => {
    const server = await shop({ t: {} });
    const reported: [unknown, Entry][] = [];
    const onSinkError = (error: unknown, entry: Entry) => reported.push([error, entry]);
    const sink = (entry: Entry) => {
      if (entry.kind === "intent") throw new Error("disk full");
    };
    const closed = clientOf(server.url, { interceptors: [audit({ sink, onSinkError })] });
    await expect(closed.callTool("s", "t")).rejects.toMatchObject({
      name: "ExecutionError",
      code: "audit_failed",
      maybeExecuted: false,
    });
    expect(server.runs.t).toBeUndefined();
    const never = clientOf(server.url, {
      interceptors: [audit({ sink: () => new Promise(() => {}), timeoutMs: 50, onSinkError })],
    });
    await expect(never.callTool("s", "t")).rejects.toThrow("audit entry could not be written");
    const going = clientOf(server.url, { interceptors: [audit({ sink, failClosed: false, onSinkError })] });
    expect((await going.callTool("s", "t")).isError).toBe(false);
    expect(reported.map(([error, entry]) => `${error} ${entry.kind}`)).toEqual([
      "Error: disk full intent",
      "Error: the audit sink took longer than 50 ms intent",
      "Error: disk full intent",
    ]);
  });

  it("writes down that a call was not sent whose intent came too late", async () => {
    const server = await shop({ t: {} });
    const entries: Entry[] = [];
    const sink = async (entry: Entry) => {
      if (entry.kind === "intent") await new Promise((resolve) => setTimeout(resolve, 120));
      entries.push(entry);
    };
    const client = clientOf(server.url, { interceptors: [audit({ sink, timeoutMs: 30, onSinkError: () => {} })] });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "audit_failed" });
    await vi.waitFor(() => expect(entries).toHaveLength(2));
    expect(entries).toMatchObject([
      { kind: "intent", pass: 1 },
      { kind: "outcome", pass: 1, outcome: "error", error: { code: "audit_failed", maybeExecuted: false } },
    ]);
    expect(server.runs.t).toBeUndefined();
  });

  it("takes the name of the call and of its effect from whoever makes it", async () => {
    const server = await shop({ t: {} });
    const entries: Entry[] = [];
    const client = clientOf(server.url, { interceptors: [audit({ sink: (entry) => entries.push(entry) })] });
    const meta = { [META.idempotencyKey]: "refund-7" };
    await client.callTool("s", "t", {}, { callId: "mine", meta });
    await client.callTool("s", "t");
    expect(entries).toMatchObject([
      { callId: "mine", idempotencyKey: "refund-7" },
      { callId: "mine", outcome: "ok" },
      { callId: expect.stringMatching(/^call-/) },
      { callId: entries[2]?.callId },
    ]);
    expect(entries[2]).not.toHaveProperty("idempotencyKey");
    const other = clientOf(server.url, { interceptors: [audit({ sink: (entry) => entries.push(entry) })] });
    await other.callTool("s", "t");
    expect(entries[4]?.callId).not.toBe(entries[2]?.callId);
    for (const callId of ["", "a\0", "x".repeat(201), 7 as never]) {
      await expect(client.callTool("s", "t", {}, { callId })).rejects.toThrow("callId must be a text of 1 to 200");
    }
  });

  it("reports an outcome that cannot be written with the entry, and gives the result all the same", async () => {
    const server = await shop({ t: {} });
    const reported: Entry[] = [];
    const client = clientOf(server.url, {
      interceptors: [
        audit({
          sink: (entry) => (entry.kind === "outcome" ? Promise.reject(new Error("disk full")) : undefined),
          onSinkError: (_, entry) => {
            reported.push(entry);
            throw new Error("and this fails too");
          },
        }),
      ],
    });
    expect((await client.callTool("s", "t")).isError).toBe(false);
    expect(reported).toMatchObject([{ kind: "outcome", outcome: "ok", callId: expect.stringMatching(/^call-\w+-1$/) }]);
  });

  it("needs a sink", () => {
    expect(() => audit({ sink: {} as never })).toThrow("{ intent, outcome }");
    expect(() => audit({ sink: () => {}, fialClosed: true } as never)).toThrow('did you mean "failClosed"');
  });
});
