export type { ReplicaConfig } from "../types/routing.ts";
export { type ConsulRegistryOptions, consulRegistry } from "./consul.ts";
export { type FileRegistryOptions, fileRegistry } from "./file.ts";
export { type McpRegistryOptions, mcpRegistry } from "./mcp.ts";
export { staticRegistry } from "./static.ts";
export type { Registry, RegistryListener } from "./types.ts";
