import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isRecord, messageOf } from "@tenon/core";
import type { TenonServer } from "@tenon/server";
import { CommandError } from "../failure.ts";
import { loadModule } from "../load-module.ts";
import { openNumbers } from "../numbers.ts";

/** Milliseconds that a worker has to end. */
const CLOSE_MS = 5_000;

function refuse(why: string, todo: string, cause?: unknown): CommandError {
  return new CommandError({ what: "the worker does not run", why, todo }, { code: "module", cause });
}

/** Whether it is a server of ours that can run tasks: a module may have taken it from another copy of the package. */
const isServer = (value: unknown): value is TenonServer =>
  isRecord(value) && typeof value.work === "function" && typeof value.close === "function";

/**
 * The server that a module exports as its default.
 * @throws CommandError `code: "module"` for a file that is missing, fails to load or exports something else
 */
async function loadServer(file: string): Promise<TenonServer> {
  const path = resolve(file);
  if (!existsSync(path)) throw refuse(`there is no ${file}`, "give the path of the module that exports the server");
  const module = await loadModule(path).catch((cause: unknown) => {
    throw refuse(`${file} cannot be loaded: ${messageOf(cause)}`, "run it by itself to see where it fails", cause);
  });
  const server = isRecord(module) ? module.default : undefined;
  if (isServer(server)) return server;
  throw refuse(`${file} has no server as its default export`, "end it with: export default createServer({ … })");
}

/** Runs the tasks of a module's server until a signal comes. */
export async function runWorker(
  file: string,
  { concurrency, adminPort }: { concurrency?: number; adminPort?: number },
): Promise<void> {
  const server = await loadServer(file);
  const numbers = await openNumbers({ name: `${server.name}-worker` }, adminPort);
  if (adminPort !== undefined) {
    const admin = await server.admin({ port: adminPort, ...(numbers && { metrics: numbers }) });
    process.stderr.write(`tenon worker: admin ${admin.url}\n`);
  }
  const working = await server.work(concurrency === undefined ? {} : { concurrency });
  const stop = (): void => {
    process.off("SIGINT", stop).off("SIGTERM", stop); // the second one ends it at once
    setTimeout(() => process.exit(1), CLOSE_MS).unref();
    void working.close();
  };
  process.on("SIGINT", stop).on("SIGTERM", stop);
  process.stderr.write(`tenon worker: runs tasks of ${server.name}\n`);
  await working.done;
  await server.close();
  await numbers?.close();
  process.exit(0); // a store that the module opened for itself has nobody who closes it
}
