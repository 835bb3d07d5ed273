import type { StreamEvent } from "@tenon/agent";
import { describe, expect, it } from "vitest";
import { textsFor } from "../texts/index.ts";
import { createRenderer } from "./render.ts";

const t = textsFor("en");
const stamp = { threadId: "main", runId: "r", timestamp: 0 };
type Body<T> = T extends unknown ? Omit<T, keyof typeof stamp | "seq"> : never;

/** What the terminal shows of these events. */
function shown(...events: readonly Body<StreamEvent>[]): string {
  let written = "";
  const write = (text: string): void => {
    written += text;
  };
  const render = createRenderer(write, {
    t,
    threadId: "main",
    serverTitle: (server) => `the ${server}`,
    waiting: t.chat.waits,
  });
  // each is an event without its stamp
  for (const [i, event] of events.entries()) render.event({ ...event, ...stamp, seq: i + 1 } as StreamEvent);
  return written;
}

const failure = (code: string, message: string): Body<StreamEvent> => {
  return { type: "error", error: { name: "Error", code, message, retryable: false } };
};

describe("the events of a stream in a terminal", () => {
  it("are text that runs on, and a line for each thing that happens to a call", () => {
    const call = { toolCallId: "c", name: "mcp_order_refund", server: "order", tool: "refund" };
    const text = shown(
      { type: "run-start", resumed: false },
      { type: "text", messageId: "m", delta: "One " },
      { type: "text", messageId: "m", delta: "moment" },
      { type: "tool-start", ...call, args: { id: "ORD-1" } },
      { type: "progress", ...call, progress: 1, total: 2, message: "ORD-1" },
      { type: "log", ...call, level: "info", data: { msg: "booked", extra: { n: 1 } } },
      { type: "tool-end", ...call, status: "error", text: "no \u001b[31mmoney" },
      { type: "end", state: "done", questions: [] },
    );
    expect(text).toBe(
      `\n${t.chat.assistant}One moment\n  · calling order/refund {"id":"ORD-1"}\n` +
        '  progress ██████████░░░░░░░░░░ 1/2 ORD-1\n  [the order info] booked {"n":1}\n  ✗ failed: no money\n',
    );
  });

  it("name an answer that came too late and a busy thread in the person's words", () => {
    expect(shown(failure("superseded", "1 of the answers was dropped"))).toBe(`${t.chat.superseded}\n`);
    expect(shown(failure("disk_full", "the disk is full"))).toBe(`${t.chat.diskFull}\n`);
    expect(shown(failure("thread_busy", "Thread main is run by p 1 2"))).toBe(`${t.chat.threadBusy("main")}\n`);
  });

  it("say what else went wrong in one line, with the reference that finds it in the log", () => {
    const message = "The run failed unexpectedly (reference 1a2b3c4d)\n    at secret (file.ts:1:2)";
    expect(shown(failure("unexpected", message))).toBe(
      `${t.chat.turnFailed("The run failed unexpectedly (reference 1a2b3c4d)")}\n`,
    );
    expect(shown(failure("unexpected", ""))).toBe(`${t.chat.turnFailed("unexpected error")}\n`);
  });

  it("warn of a question that is not shown in full", () => {
    const question = { kind: "approval" as const, id: "q", actions: [] };
    expect(shown({ type: "question", question })).toBe("");
    expect(shown({ type: "question", question, truncated: true })).toBe(`${t.chat.questionCut}\n`);
  });
});
