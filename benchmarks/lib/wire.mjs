// Prebuilt messages of both protocol eras.
export const MODERN = "2026-07-28";
export const LEGACY = "2025-11-25";
const PREFIX = "io.modelcontextprotocol/";

/** One request of an era as `{ body, headers }`. */
export function request(era, method, params = {}, id = 1, capabilities = {}) {
  const envelope = {
    [`${PREFIX}protocolVersion`]: MODERN,
    [`${PREFIX}clientInfo`]: { name: "bench", version: "1.0.0" },
    [`${PREFIX}clientCapabilities`]: capabilities,
  };
  const modern = era === "modern";
  return {
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params: modern ? { ...params, _meta: envelope } : params }),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": modern ? MODERN : LEGACY,
      ...(modern && { "mcp-method": method }),
      ...(modern && params.name && { "mcp-name": params.name }),
    },
  };
}

export const callAdd = (era) => request(era, "tools/call", { name: "add", arguments: { a: 2, b: 40 } });
export const listTools = (era) => request(era, "tools/list");
