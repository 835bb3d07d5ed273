import { ToolMessage } from "@langchain/core/messages";
import { isCommand, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, didYouMean, digest } from "@tenon/core/internal";
import { type AgentClient, type McpToolsOptions, mcpTools } from "./tools.ts";

/**
 * Calls a tool from a node of a graph.
 *
 * @param name as in the catalog
 * @param config the node's own
 * @param id names the call within its node. Default: its name and arguments; give one to a call that is meant to be made twice
 * @returns the tool's structured content, or its text where it has none
 */
export type ToolCaller = (
  name: string,
  args: Readonly<Record<string, unknown>>,
  config: LangGraphRunnableConfig,
  id?: string,
) => Promise<unknown>;

/**
 * The tools of a client's catalog for the nodes of a graph of one's own, as one function: the call goes with the node's state and
 * thread, a question interrupts the graph, a node that runs again makes the same call, and a failure is thrown as a typed error.
 *
 * @throws ConfigError `code: "unknown_option"`, `"invalid_option"`; when called `"unknown_tool"`, or `"command_outcome"` for an
 *   interceptor's Command, which only `tool.invoke` can hand to the graph
 * @example
 * const call = await toolCaller(client);
 * graph.addNode("look_up", async ({ query }, config) => ({ found: await call("mcp_kb_search", { query }, config) }));
 */
export async function toolCaller<Context = unknown, State = unknown>(
  client: AgentClient<Context, State>,
  options: Pick<McpToolsOptions, "servers" | "legacyQuestions"> = {},
): Promise<ToolCaller> {
  checkOptions(options, ["servers", "legacyQuestions"], "toolCaller(client, options)");
  const listed = await mcpTools(client, { ...options, toolErrors: "throw" });
  const tools = new Map(listed.map((tool) => [tool.name, tool]));
  return async (name, args, config, id = `${name}:${digest([args])}`) => {
    const tool = tools.get(name);
    if (!tool) {
      const near = didYouMean(name, [...tools.keys()]);
      const hint = near ? `did you mean "${near}"?` : `there are ${[...tools.keys()].join(", ") || "none"}`;
      throw new ConfigError(`there is no tool "${name}"; ${hint}`, { code: "unknown_tool", data: { name, near } });
    }
    const outcome: unknown = await tool.invoke({ type: "tool_call", id, name, args: { ...args } }, config);
    if (ToolMessage.isInstance(outcome)) {
      const { artifact } = outcome;
      return isRecord(artifact) && artifact.structured !== undefined ? artifact.structured : outcome.text;
    }
    // a failure inside createAgent ends the run by throwing here
    const kind = isCommand(outcome) && outcome.graph === undefined ? "a Command" : "something else than a message";
    throw new ConfigError(
      `An interceptor answered the call of ${name} with ${kind}, which has no value; call the tool of mcpTools and return it from the node`,
      { code: "command_outcome", maybeExecuted: true },
    );
  };
}
