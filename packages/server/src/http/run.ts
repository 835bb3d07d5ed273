import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { TenonError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type RunOptions, readFlags, usage } from "./flags.ts";
import type { Listening, ListenOptions } from "./listen.ts";

interface Runnable {
  readonly name: string;
  listen(options?: ListenOptions): Promise<Listening>;
  stdio(): Promise<void>;
  close(): Promise<void>;
}

function isEntry(meta: ImportMeta): boolean {
  const entry = process.argv[1];
  return entry !== undefined && realpathSync(entry) === realpathSync(fileURLToPath(meta.url));
}

/** Serves until the client leaves (stdio) or a signal arrives (SIGINT, SIGTERM), then closes everything and ends the process. */
export async function runIfEntry(server: Runnable, meta: ImportMeta, options: RunOptions = {}): Promise<void> {
  if (!isEntry(meta)) return;
  try {
    checkOptions(
      options,
      ["transport", "banner", "port", "host", "path", "tls", "unixSocket", "register"],
      "run(options)",
    );
    const asked = readFlags(process.argv.slice(2), options);
    if (asked === "help") {
      process.stdout.write(`${server.name}: an MCP server\n\n${usage()}`, () => process.exit(0));
      return;
    }
    const { transport = "stdio", banner = true, ...listenOptions } = asked;
    const signalled = new Promise<void>((resolve) => {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
    });
    if (transport === "http") {
      const { url } = await server.listen(listenOptions);
      if (banner && process.stderr.isTTY) process.stderr.write(`${server.name} listens on ${url}\n`);
      await signalled;
    } else {
      await Promise.race([server.stdio(), signalled]);
    }
    await server.close();
    process.exit(0);
  } catch (error) {
    // the program's edge: one line for a person, the trace only for a defect of ours
    const known = error instanceof TenonError;
    process.stderr.write(
      `${server.name}: ${known ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
    );
    process.exit(1);
  }
}
