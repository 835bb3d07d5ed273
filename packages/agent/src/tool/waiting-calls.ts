import type { CatalogTool, ServerInfo } from "@tenon/client";
import { ConfigError, ConnectionError } from "@tenon/core";
import { type McpTool, mcpMetadata } from "./mcp-tool.ts";
import type { CallOrigin } from "./origins.ts";

/** What is asked of a client about its servers: `createClient`'s, or a `MultiServerMCPClient`. */
export type ServersOfAgent = { servers(): readonly ServerInfo[] } & (
  | { listTools(...servers: string[]): Promise<readonly CatalogTool[]> }
  | { getTools(servers: readonly string[]): Promise<readonly McpTool[]> }
);

/** A call whose tool the agent does not have. */
interface Absent extends Pick<CallOrigin, "server" | "tool"> {
  /** As the model calls it. */
  readonly name: string;
}

/** A call that has to wait for its server, as the error that ends the run. */
export function callWaits({ name, server, tool }: Absent, why: string, cause?: unknown): ConnectionError {
  return new ConnectionError(
    `The call of ${name} waits: it is for ${tool} of server "${server}", and ${why}. Nothing is lost: the thread stays where it ` +
      "is. Make the agent again when the server can be reached, and continue the thread; the same call runs then.",
    { code: "call_waits", retryable: true, server, data: { name, tool }, ...(cause !== undefined && { cause }) },
  );
}

async function wireNames(client: ServersOfAgent, server: string): Promise<readonly string[]> {
  if ("listTools" in client) {
    const catalog = await client.listTools(server);
    return catalog.filter((one) => one.server === server).map(({ wireName }) => wireName);
  }
  const tools = await client.getTools([server]);
  return tools.flatMap((one) => mcpMetadata(one)?.tool ?? []);
}

/**
 * Why a call of a tool that the agent does not have must wait; undefined where its server does not offer the tool any more, or
 * is not configured any more, so that waiting would never end.
 *
 * @param known the client of the tools, or at least tools: a server none of whose tools are among them counts as out of reach
 */
export async function waitFor(
  absent: Absent,
  known: { readonly client?: ServersOfAgent | undefined; readonly tools?: readonly { readonly metadata?: unknown }[] },
): Promise<ConnectionError | undefined> {
  const { client, tools } = known;
  const { server, tool } = absent;
  if (!client) {
    if (tools?.some((one) => mcpMetadata(one)?.server === server)) return undefined;
    const unsure = "the agent was made without it (mcpMiddleware({ client }) can tell whether the server still has it)";
    return callWaits(absent, unsure);
  }
  const infoOf = () => client.servers().find((info) => info.server === server);
  if (!infoOf()) return undefined;
  try {
    const offered = await wireNames(client, server);
    // it may have come back after the agent was made
    if (offered.includes(tool)) return callWaits(absent, "the agent was made without it");
  } catch (error) {
    if (error instanceof ConfigError) throw error; // nothing that time heals
    return callWaits(absent, "it cannot be reached now", error);
  }
  const info = infoOf();
  // a server that is up may still not have told its tools
  if (info?.health === "up" && info.error === undefined) return undefined;
  return callWaits(absent, `it cannot be reached now (${info?.error?.message ?? info?.health ?? "unknown"})`);
}

/** Calls of which it was never noted whose they are, as in threads of earlier versions: one of the servers that are down may own them. */
export function waitForAny(name: string, client: ServersOfAgent | undefined): ConnectionError | undefined {
  const down = client?.servers().find(({ health }) => health === "down");
  if (!down) return undefined;
  return callWaits(
    { name, server: down.server, tool: name },
    "the server cannot be reached now, so it may be its tool",
  );
}
