import type { CatalogTool, ServerInfo } from "@tenon/client";
import { ConfigError, ConnectionError } from "@tenon/core";
import type { MultiServerConfig } from "./types.ts";

/**
 * Tells of servers that cannot be reached, and of tools that cannot be used, as the configuration wants it.
 * @throws ConfigError `unusable_tool`, and whatever `onConnectionError` throws
 */
export function tellFailures(
  { onConnectionError, throwOnLoadError }: Pick<MultiServerConfig, "onConnectionError" | "throwOnLoadError">,
  infos: readonly ServerInfo[],
  catalog: readonly CatalogTool[],
): void {
  if (typeof onConnectionError === "function") {
    for (const { server, health, error } of infos) {
      if (health !== "down") continue;
      const failure = new ConnectionError(error?.message ?? `server "${server}" cannot be reached`, {
        code: error?.code ?? "unreachable",
        server,
      });
      onConnectionError({ serverName: server, error: failure });
    }
  }
  if (throwOnLoadError) {
    const known = new Set(catalog.map(({ server, wireName }) => `${server}/${wireName}`));
    for (const { server, problems } of infos) {
      for (const { tool, reason } of problems) {
        if (known.has(`${server}/${tool}`) || /^(prompts|resources)\/list$|^resources\/templates\/list$/.test(tool))
          continue;
        throw new ConfigError(`tool "${tool}" of server "${server}" cannot be used: ${reason}`, {
          code: "unusable_tool",
          server,
        });
      }
    }
  }
}
