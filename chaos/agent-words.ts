import type { SerializedError } from "@tenon/core";

/** What the person in front of an agent does when they are asked. */
export interface Plan {
  readonly approval: "approve" | "reject";
  /** What they say to a question of the server, or that they leave it open for now. */
  readonly question: "confirm" | "choose_cancel" | "decline" | "dismiss" | "leave";
}

/** What the harness asks of an agent process. */
export type Request = { readonly id: number; readonly thread: string } & (
  | {
      readonly do: "turn";
      /** Sent unless the thread has it; left out, only what is open is carried on. */
      readonly message?: { readonly id: string; readonly text: string };
      readonly plan: Plan;
    }
  | { readonly do: "read" }
  | {
      /** Refunds many orders as a task: begins it, or follows the one that was begun. */
      readonly do: "task";
      readonly orders: readonly string[];
      readonly tag: string;
      /** Where somebody has seen it. */
      readonly task?: string;
    }
);

/** A message of a thread. */
export type Told = { readonly id: string; readonly text: string } & (
  | { readonly kind: "human" }
  | { readonly kind: "ai"; readonly calls: readonly { id: string; name: string; args: Record<string, unknown> }[] }
  | {
      readonly kind: "tool";
      readonly callId: string;
      readonly tool: string;
      readonly failed: boolean;
      readonly structured: unknown;
      /** Set when the call failed before the tool could answer. */
      readonly error: Record<string, unknown> | null;
    }
);

/** A person was asked something. */
export interface Asked {
  readonly kind: "approval" | "question";
  readonly id: string;
}

export type ThreadStatus = "done" | "paused" | "cut";

/** What an agent process says. */
export type Said =
  | { readonly event: "asked"; readonly thread: string; readonly asked: Asked; readonly answered: boolean }
  /** A task was accepted. */
  | { readonly event: "accepted"; readonly thread: string; readonly task: string }
  | { readonly event: "done"; readonly id: number; readonly status: ThreadStatus; readonly told: readonly Told[] }
  | { readonly event: "failed"; readonly id: number; readonly error: SerializedError };
