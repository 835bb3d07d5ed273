import { Command } from "@langchain/langgraph";
import { type AgentInterceptor, toolMessageOf } from "@tenon/agent";
import type { ToolRuntime } from "@tenon/client";
import { injectArgs } from "@tenon/client/interceptors";
import { TenonError } from "@tenon/core";

/** Who is in front of the desk. */
export interface DeskContext {
  readonly userId: string;
  readonly userName: string;
}

/** One line of the audit log: every call to a server, whatever came of it. */
export interface AuditLine {
  /** ISO 8601. */
  readonly at: string;
  readonly user: string;
  readonly server: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly outcome: "ok" | "error";
  /** Milliseconds. */
  readonly took: number;
}

/** Puts the caller into every call to a server. No model sees the field; what one writes there is thrown away. */
export const authInject = injectArgs<ToolRuntime<DeskContext>>({
  caller_id: ({ runtime: { context } }) => (context ? `${context.userId}(${context.userName})` : ""),
});

/** Appends one line per call to the state's `auditLog`; errors are written down too, and keep their message. */
export const auditLog: AgentInterceptor<DeskContext> = async (request, next) => {
  const started = Date.now();
  const record = (outcome: AuditLine["outcome"]): AuditLine => ({
    at: new Date(started).toISOString(),
    user: request.runtime.context?.userName ?? "",
    server: request.server,
    tool: request.name,
    args: request.args,
    outcome,
    took: Date.now() - started,
  });
  try {
    const outcome = await next(request);
    if (!("content" in outcome) || !("isError" in outcome)) return outcome; // another interceptor's message or command
    const message = toolMessageOf(request, outcome);
    return new Command({ update: { messages: [message], auditLog: [record(outcome.isError ? "error" : "ok")] } });
  } catch (error) {
    // a suspended call passes through: it is not over, and is written down when it is
    if (!(error instanceof TenonError)) throw error;
    return new Command({ update: { messages: [toolMessageOf(request, error)], auditLog: [record("error")] } });
  }
};
