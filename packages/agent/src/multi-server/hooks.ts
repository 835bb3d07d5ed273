import { ToolMessage } from "@langchain/core/messages";
import { isCommand } from "@langchain/langgraph";
import type { ToolCallRequest, ToolResult } from "@tenon/client";
import { ConfigError, isRecord } from "@tenon/core";
import type { ShownResult } from "../tool/messages.ts";
import type { AgentInterceptor } from "../tool/tools.ts";
import type { HookOutput, HookRuntime, ToolHooks } from "./types.ts";

type Shown = ShownResult & { readonly artifact: readonly unknown[] };

function runtimeOf(request: ToolCallRequest): HookRuntime {
  const { threadId } = request.runtime;
  return { ...request.runtime, configurable: threadId === undefined ? {} : { thread_id: threadId } };
}

function isToolResult(outcome: unknown): outcome is ToolResult {
  return isRecord(outcome) && Array.isArray(outcome.content) && typeof outcome.isError === "boolean";
}

function isOutput(value: unknown): value is HookOutput {
  if (!Array.isArray(value) || value.length !== 2 || !Array.isArray(value[1])) return false;
  return typeof value[0] === "string" || Array.isArray(value[0]);
}

function replacement(result: unknown, request: ToolCallRequest): Awaited<ReturnType<AgentInterceptor>> {
  if (ToolMessage.isInstance(result) || isCommand(result)) return result;
  const output: unknown = typeof result === "string" ? [result, []] : result;
  if (!isOutput(output)) {
    throw new ConfigError(
      `afterToolCall answered ${request.server}/${request.name} with a result that is none of: a text, a ToolMessage, a Command, ` +
        "[content, artifact]. The tool itself has run: do not call it again.",
      { code: "invalid_hook_result", server: request.server },
    );
  }
  const [content, artifact] = output;
  return new ToolMessage({ content, artifact, tool_call_id: request.runtime.toolCallId ?? "", status: "success" });
}

/** `beforeToolCall` and `afterToolCall` as one interceptor, to be the outermost. */
export function hooksInterceptor(
  { beforeToolCall, afterToolCall }: ToolHooks,
  show: (server: string, result: ToolResult) => Promise<Shown>,
): AgentInterceptor {
  return async (request, next) => {
    const { server: serverName, name } = request;
    const runtime = runtimeOf(request);
    const state = runtime.state ?? {};
    const change = (await beforeToolCall?.({ serverName, name, args: request.args }, state, runtime)) ?? {};
    const args = { ...request.args, ...change.args };
    const sent = request.with({ args, ...(change.headers && { headers: { ...change.headers } }) });
    const outcome = await next(sent);
    if (!afterToolCall || !isToolResult(outcome) || outcome.isError) return outcome;
    const shown = await show(serverName, outcome);
    const result: HookOutput = [shown.content, shown.artifact];
    const replaced = await afterToolCall({ serverName, name, args, result }, state, runtime);
    // the same pair given back changes nothing
    if (!replaced || replaced.result === result) return outcome;
    return replacement(replaced.result, request);
  };
}
