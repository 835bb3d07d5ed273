import { fileURLToPath } from "node:url";

/** How an example's client starts the server beside it as a child process. */
export function child(meta: ImportMeta, file = "server.ts"): { command: string; args: string[] } {
  return { command: process.execPath, args: ["--import", "tsx", fileURLToPath(new URL(file, meta.url))] };
}
