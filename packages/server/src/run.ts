import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ConfigError, checkOptions, didYouMean, TenonError } from "@tenon/core";
import type { Listening, ListenOptions } from "./listen.ts";

export interface RunOptions extends ListenOptions {
  /** Default `stdio`. */
  transport?: "stdio" | "http";
  /** One line on a terminal's stderr that says where the server listens. Default true. */
  banner?: boolean;
}

interface Runnable {
  readonly name: string;
  listen(options?: ListenOptions): Promise<Listening>;
  stdio(): Promise<void>;
  close(): Promise<void>;
}

function transportOf(word: string): "stdio" | "http" {
  if (word === "stdio" || word === "http") return word;
  if (word === "streamable-http") return "http";
  if (word === "sse") {
    throw new ConfigError("The transport sse is gone from the protocol; use http (streamable-http)", {
      code: "transport",
    });
  }
  const near = didYouMean(word, ["stdio", "http", "streamable-http"]);
  throw new ConfigError(`Unknown transport "${word}"; ${near ? `did you mean ${near}?` : "use stdio or http"}`, {
    code: "transport",
  });
}

/** Flags override options. @throws ConfigError for a flag nobody reads or a port that is none */
function readFlags(args: readonly string[]): RunOptions {
  let values: Record<string, string | boolean | undefined>;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        transport: { type: "string" },
        port: { type: "string" },
        host: { type: "string" },
        path: { type: "string" },
        "no-banner": { type: "boolean" },
      },
    }));
  } catch (cause) {
    throw new ConfigError(
      `${cause instanceof Error ? cause.message : String(cause)}; known: --transport --port --host --path --no-banner`,
      {
        code: "flag",
        cause,
      },
    );
  }
  const text = (key: string): string | undefined => (typeof values[key] === "string" ? values[key] : undefined);
  const port = text("port");
  if (port !== undefined && !(/^\d+$/.test(port) && Number(port) <= 65_535)) {
    throw new ConfigError(`--port ${port} is not a port: expected a number from 0 to 65535`, { code: "flag" });
  }
  const transport = text("transport");
  const host = text("host");
  const path = text("path");
  return {
    ...(transport !== undefined && { transport: transportOf(transport) }),
    ...(port !== undefined && { port: Number(port) }),
    ...(host !== undefined && { host }),
    ...(path !== undefined && { path }),
    ...(values["no-banner"] === true && { banner: false }),
  };
}

function isEntry(meta: ImportMeta): boolean {
  const entry = process.argv[1];
  return entry !== undefined && realpathSync(entry) === realpathSync(fileURLToPath(meta.url));
}

/** Serves until the client leaves (stdio) or a signal arrives (SIGINT, SIGTERM), then closes everything and ends the process. */
export async function runIfEntry(server: Runnable, meta: ImportMeta, options: RunOptions = {}): Promise<void> {
  if (!isEntry(meta)) return;
  try {
    checkOptions(options, ["transport", "banner", "port", "host", "path", "tls", "unixSocket"], "run(options)");
    const {
      transport = "stdio",
      banner = true,
      ...listenOptions
    } = { ...options, ...readFlags(process.argv.slice(2)) };
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
