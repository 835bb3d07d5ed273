import { program } from "../../../test/programs.ts";
import type { StdioServerConfig } from "../src/index.ts";

const stdioServer = await program("./stdio-server.ts", import.meta.url);

/** The configuration of a server as a child process. */
export function child(...args: string[]): StdioServerConfig {
  return { command: process.execPath, args: [stdioServer, ...args], connectTimeoutMs: 15_000 };
}
