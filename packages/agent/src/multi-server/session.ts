import type {
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  PromptMessage,
  ServerInfo,
  ToolResult,
} from "@tenon/client";
import { ConfigError, isRecord } from "@tenon/core";
import type { AgentClient } from "../tool/tools.ts";
import { contentsOf } from "./content.ts";
import type { RequestHeaders } from "./types.ts";

/** One server of a `MultiServerMCPClient`: what programs use of the SDK's client, with answers of the same form. */
export interface ServerSession {
  readonly server: string;
  info(): ServerInfo | undefined;
  listTools(): Promise<{ tools: Array<Omit<CatalogTool, "name" | "server" | "wireName"> & { readonly name: string }> }>;
  /** Calls a tool by its name on the wire, through the interceptors. @throws ConfigError when one of them answered instead */
  callTool(params: { name: string; arguments?: Record<string, unknown> }): Promise<ToolResult["raw"]>;
  listResources(): Promise<{ resources: readonly CatalogResource[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: readonly CatalogResourceTemplate[] }>;
  readResource(params: { uri: string }): Promise<{ contents: ReadonlyArray<Record<string, unknown>> }>;
  listPrompts(): Promise<{ prompts: readonly CatalogPrompt[] }>;
  getPrompt(params: {
    name: string;
    arguments?: Record<string, string>;
  }): Promise<{ messages: readonly PromptMessage[] }>;
}

/** The session with one server of `client()`, which is asked for anew with each use. */
export function sessionOf(client: () => AgentClient, server: string, { headers }: RequestHeaders): ServerSession {
  const options = headers ? { headers: { ...headers } } : {};
  return {
    server,
    info: () =>
      client()
        .servers()
        .find((one) => one.server === server),
    async listTools() {
      const tools = await client().listTools(server);
      return {
        tools: tools.map(({ name: _shown, server: _server, wireName, ...tool }) => ({ ...tool, name: wireName })),
      };
    },
    async callTool({ name, arguments: args }) {
      const outcome = await client().callTool(server, name, args ?? {}, options);
      if (isRecord(outcome) && "raw" in outcome && "isError" in outcome) return (outcome as unknown as ToolResult).raw; // only results have both
      throw new ConfigError(
        `an interceptor answered ${server}/${name} with a message or a command, which only an agent's call can take. ` +
          "Call the tool that getTools() gives instead",
        { code: "not_a_result", server },
      );
    },
    listResources: async () => ({ resources: await client().listResources(server) }),
    listResourceTemplates: async () => ({ resourceTemplates: await client().listResourceTemplates(server) }),
    readResource: async ({ uri }) => ({
      contents: (await client().readResources(server, [uri], options)).map(contentsOf),
    }),
    listPrompts: async () => ({ prompts: await client().listPrompts(server) }),
    getPrompt: async ({ name, arguments: args }) => ({
      messages: await client().getPrompt(server, name, args ?? {}, options),
    }),
  };
}
