export { type Config, type ConfigOptions, loadConfig, type ParseOptions, parseConfig } from "./config.ts";
export type { ConfigWarning } from "./servers.ts";
export type { ConfigInput } from "./variables.ts";
