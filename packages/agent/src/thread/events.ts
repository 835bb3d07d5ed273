import type { BaseMessage } from "@langchain/core/messages";
import { isRecord } from "@tenon/core";
import type { Question } from "../question/open-questions.ts";
import type { McpArtifact } from "../tool/messages.ts";

/** Where a tool call comes from and goes to. */
export interface CallOrigin {
  /** The tool's name as the model knows it. */
  readonly name: string;
  /** Configured server and wire name, for tools of MCP servers. */
  readonly server?: string;
  readonly tool?: string;
}

/** What happens in a run of a thread. */
export type ThreadEvent =
  /** The model writes: a piece of its text. The first piece of a message id begins that message. */
  | { readonly type: "text"; readonly messageId: string; readonly delta: string }
  /** The model thinks aloud, where its provider tells. Not part of the answer. */
  | { readonly type: "reasoning"; readonly messageId: string; readonly delta: string }
  /** The message is complete. Only for messages that had text or reasoning. */
  | { readonly type: "text-end"; readonly messageId: string }
  /** The model begins to write a tool call. */
  | ({ readonly type: "call-start"; readonly toolCallId: string; readonly messageId: string } & CallOrigin)
  /** A piece of the call's arguments as JSON text, where the provider streams them. */
  | { readonly type: "call-args"; readonly toolCallId: string; readonly delta: string }
  /** The call is complete. `problem` says why arguments could not be read; such a call does not run. */
  | ({
      readonly type: "call-end";
      readonly toolCallId: string;
      readonly args: Readonly<Record<string, unknown>>;
      readonly problem?: string;
    } & CallOrigin)
  /** A tool begins, with the arguments it gets. Once per call, also when the call is suspended and continued. */
  | ({
      readonly type: "tool-start";
      readonly toolCallId: string;
      readonly args: Readonly<Record<string, unknown>>;
    } & CallOrigin)
  | {
      readonly type: "progress";
      readonly toolCallId?: string;
      readonly server: string;
      readonly tool: string;
      readonly progress: number;
      readonly total?: number;
      readonly message?: string;
      readonly percent?: number;
    }
  | {
      readonly type: "log";
      readonly toolCallId?: string;
      readonly server: string;
      readonly tool: string;
      readonly level: string;
      readonly logger?: string;
      readonly data: unknown;
    }
  /** A call has its answer; without a `tool-start` when a person rejected the call or answered for the tool. */
  | {
      readonly type: "tool-end";
      readonly toolCallId: string;
      readonly name?: string;
      readonly server?: string;
      readonly tool?: string;
      readonly status: "success" | "error";
      readonly text: string;
      readonly artifact?: McpArtifact;
    }
  /** Values of the thread's state that are new or changed, messages apart: what commands and steps updated. */
  | { readonly type: "state"; readonly values: Readonly<Record<string, unknown>> }
  /** A person is about to be asked. */
  | { readonly type: "question"; readonly question: Question };

/** What happens while an agent is driven from question to question. */
export type RunEvent =
  | ThreadEvent
  /** These questions were answered elsewhere while the person here was thinking; their answers were dropped. */
  | { readonly type: "superseded"; readonly questions: readonly Question[] };

/** The messages of a thread's state. */
export function messagesOf(values: unknown): BaseMessage[] {
  const messages = isRecord(values) ? values.messages : undefined;
  return Array.isArray(messages) ? messages : [];
}
