import type { StreamEvent } from "@tenon/agent";
import { cleanText as clean, isRecord, messageOf } from "@tenon/core";
import type { AuditLine } from "../agent/interceptors.ts";
import { rejectionReason } from "../agent/rejection.ts";
import type { Texts } from "../texts/index.ts";

const WIDTH = 20;

function bar(progress: number, total: number): string {
  const filled = Math.round(Math.min(1, progress / total) * WIDTH);
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${progress}/${total}`;
}

function logText(data: unknown): string {
  if (typeof data === "string") return data;
  if (isRecord(data) && typeof data.msg === "string") return `${data.msg} ${JSON.stringify(data.extra ?? {})}`;
  return JSON.stringify(data);
}

/** What went wrong, in one line and without anything from inside. */
export function reasonOf(thrown: unknown): string {
  const message = messageOf(thrown);
  return clean(message.split("\n")[0] ?? "").slice(0, 300) || "unexpected error";
}

interface Problem {
  readonly code: string;
  readonly message: string;
  readonly server?: string;
}

function problemOf({ code, message, server }: Problem, { t, threadId, waiting }: View): string {
  if (code === "call_waits" && server !== undefined) return waiting(server);
  if (code === "superseded") return t.chat.superseded;
  if (code === "thread_busy") return t.chat.threadBusy(clean(threadId));
  if (code === "disk_full") return t.chat.diskFull;
  return t.chat.turnFailed(reasonOf(message));
}

/** Whose events are shown, and in which words. */
export interface View {
  t: Texts;
  threadId: string;
  /** How a server is called on the screen. */
  serverTitle(server: string): string;
  /** What is said of a request that waits for a server. */
  waiting(server: string): string;
}

/** What an event other than text looks like, or undefined for those that are shown elsewhere. */
function lineOf(event: StreamEvent, view: View): string | undefined {
  const { t, serverTitle } = view;
  switch (event.type) {
    case "tool-start": {
      const name = event.tool === undefined ? event.name : `${event.server}/${event.tool}`;
      return `  · ${t.chat.tool(clean(name))} ${clean(JSON.stringify(event.args))}`;
    }
    case "progress": {
      const amount = event.total === undefined ? String(event.progress) : bar(event.progress, event.total);
      return `  ${t.chat.progress} ${amount} ${clean(event.message ?? "")}`;
    }
    case "log": {
      const level = t.chat.level[event.level] ?? event.level;
      return `  [${serverTitle(event.server)} ${level}] ${clean(logText(event.data))}`;
    }
    case "tool-end":
      // who rejected a call need not be told
      return event.status === "error" && rejectionReason(event.text) === undefined
        ? `  ✗ ${t.chat.toolFailed}: ${clean(event.text)}`
        : undefined;
    case "question":
      return event.truncated ? t.chat.questionCut : undefined; // what it asks is shown when its turn has come
    case "error":
      return clean(problemOf(event.error, view));
    // shown elsewhere, or of no use in a terminal
    case "text":
    case "run-start":
    case "end":
    case "reasoning":
    case "text-end":
    case "call-start":
    case "call-args":
    case "call-end":
    case "state":
      return undefined;
  }
}

/** Turns the events of a stream into lines of a terminal; knows whether the assistant's text is in mid-line. */
export function createRenderer(write: (text: string) => void, view: View) {
  const { t } = view;
  let speaking = false;
  const endLine = (): void => {
    if (speaking) write("\n");
    speaking = false;
  };
  return {
    event(event: StreamEvent): void {
      if (event.type === "text") {
        if (!speaking) write(`\n${t.chat.assistant}`);
        speaking = true;
        write(clean(event.delta));
        return;
      }
      endLine();
      const line = lineOf(event, view);
      if (line !== undefined) write(`${line}\n`);
    },
    audit(lines: readonly AuditLine[]): void {
      endLine();
      if (lines.length === 0) write(`  ${t.chat.audit}: ${t.chat.noAudit}\n`);
      for (const line of lines) {
        const at = new Date(line.at).toLocaleString("sv-SE"); // 2026-01-31 09:30:00, local time
        const call = `${line.server}/${line.tool} ${clean(JSON.stringify(line.args))}`;
        write(`  ${t.chat.audit} [${at}] ${line.user} ${call} ${line.outcome}\n`);
      }
    },
  };
}
