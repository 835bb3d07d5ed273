import { Command } from "@langchain/langgraph";
import type { CatalogTool } from "@tenon/client";
import { ConfigError, isRecord } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import { type Execution, hasParentGraph, insideCreateAgent, isGuarded, unknownStateKeys } from "./checkpoint.ts";
import { answerCall, gotoOf, updateOf } from "./commands.ts";

/** The run a call is part of. */
export interface ToolExecution extends Execution {
  readonly state?: unknown;
}

function commandError(entry: CatalogTool, what: string, code: string): ConfigError {
  return new ConfigError(
    `An interceptor answered ${entry.name} with a Command ${what} The tool itself may have run: do not call it again.`,
    { code, server: entry.server },
  );
}

/** Refuses what LangGraph would drop without a word. */
function checkCommand(entry: CatalogTool, config: ToolExecution, command: Command): void {
  if (command.graph === Command.PARENT) {
    if (hasParentGraph(config)) return; // its update is for the state of that graph
    const what =
      "for the graph around this one (Command.PARENT), but this graph is not a step of another one. Leave out `graph`.";
    throw commandError(entry, what, "no_parent_graph");
  }
  const unknown = unknownStateKeys(config, Object.keys(updateOf(command)));
  const [key] = unknown;
  if (key === undefined) return;
  const near = didYouMean(key, Object.keys(isRecord(config.state) ? config.state : {}));
  const hint = near ? `did you mean "${near}"?` : "declare it in the agent's stateSchema.";
  throw commandError(
    entry,
    `that updates "${key}", which is not part of the agent's state; ${hint}`,
    "unknown_state_key",
  );
}

/**
 * An interceptor's Command as the answer of a call, with a message for it.
 * @throws ConfigError `no_parent_graph`, `unknown_state_key`, `goto_needs_middleware`
 */
export function directed(entry: CatalogTool, id: string | undefined, config: ToolExecution, command: Command): Command {
  checkCommand(entry, config, command);
  const within = command.graph === undefined; // its goto is a step of this graph
  if (within && gotoOf(command).length > 0 && insideCreateAgent(config) && !isGuarded(config, id ?? "")) {
    const what = `whose goto is ${JSON.stringify(gotoOf(command))}, which createAgent ignores. Add mcpMiddleware() as the first middleware of the agent.`;
    throw commandError(entry, what, "goto_needs_middleware");
  }
  return id === undefined ? command : answerCall(command, { id, name: entry.name });
}
