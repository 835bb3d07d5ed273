import { Command, isCommand } from "@langchain/langgraph";
import { renderText, type ToolResult } from "@tenon/client";
import { ConfigError, ExecutionError } from "@tenon/core";
import { MiddlewareError } from "langchain";

/**
 * What happens when a call fails, that is when the tool answers "error", its arguments do not fit, or the call itself breaks:
 * `"return"` gives the model a message with status `"error"` and the run goes on, `"throw"` ends the run with the error.
 */
export type ToolErrors = "return" | "throw";

/** @throws ConfigError `code: "invalid_option"` */
export function checkToolErrors(given: unknown, where: string): void {
  if (given === undefined || given === "return" || given === "throw") return;
  throw new ConfigError(`${where}.toolErrors must be "return" or "throw", got ${JSON.stringify(given)}`, {
    code: "invalid_option",
  });
}

/** What was thrown: errors of middleware wrap it, once per layer. */
export function rootOf(thrown: unknown): unknown {
  let root = thrown;
  while (MiddlewareError.isInstance(root) && root.cause !== undefined) root = root.cause;
  return root;
}

const ending = new WeakSet<object>();

/**
 * An output of a tool that ends the run with `error`. Thrown errors cannot do that: `createAgent` turns what a tool throws into
 * a message, unless some middleware wraps tool calls. Tool nodes look at a Command's `graph` where nothing is caught any more,
 * so the run rejects with the error itself, whatever middleware there is.
 */
export function endRun(error: unknown): Command {
  const command = new Command({});
  Object.defineProperty(command, "graph", {
    get() {
      throw error;
    },
  });
  // what streams and traces write down
  Object.defineProperty(command, "toJSON", { value: () => ({ lg_name: "Command" }) });
  ending.add(command);
  return command;
}

/** Whether `endRun` made this output. */
export function endsRun(output: unknown): output is Command {
  return isCommand(output) && ending.has(output);
}

/** A tool's answer "error" as an error. */
export function resultFailure(tool: { readonly server?: string; readonly name: string }, result: ToolResult): Error {
  const text = renderText(result.content, result.structured);
  return new ExecutionError(text || `Tool ${tool.name} failed without saying why.`, {
    code: result.problem?.code ?? "tool_error",
    ...(tool.server !== undefined && { server: tool.server }),
    ...(result.problem?.code === "invalid_arguments" && { maybeExecuted: false }),
    data: result.problem?.data ?? result.structured,
  });
}
