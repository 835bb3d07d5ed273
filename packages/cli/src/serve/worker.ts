import { env, pid } from "node:process";
import { messageOf } from "@tenon/core";
import { CommandError } from "../failure.ts";
import { type FromWorker, isOurs, type ToWorker } from "./messages.ts";
import type { ServeFlags } from "./serve.ts";
import { type Serving, startServing } from "./serving.ts";
import { readServeFile } from "./settings.ts";

/** Milliseconds a worker has to end. */
const CLOSE_MS = 4_000;

const tell = (message: FromWorker): Promise<void> =>
  new Promise((resolve) => {
    // without a channel nobody is left to hear it, and node ends the process
    if (!process.send?.(message, undefined, undefined, () => resolve())) resolve();
  });

async function start(flags: ServeFlags, order: Extract<ToWorker, { tenon: "start" }>): Promise<Serving> {
  const { port = flags.port, text, workers, admin } = order;
  const file = await readServeFile(text, flags.config, env, { ...flags, ...(port !== undefined && { port }) });
  const { data, database, schema } = flags;
  return startServing(file, {
    ...(data !== undefined && { data }),
    ...(database !== undefined && { database }),
    ...(schema !== undefined && { schema }),
    workers,
    adminPort: admin ? 0 : undefined,
    portGiven: flags.port !== undefined,
  });
}

/** One of several processes that serve a file. Never returns: it ends when it is told to, or with the process that watches it. */
export async function runServeWorker(flags: ServeFlags): Promise<never> {
  let serving: Promise<Serving> | undefined;
  const close = async (): Promise<void> => {
    setTimeout(() => process.exit(1), CLOSE_MS).unref();
    await (await serving?.catch(() => undefined))?.close();
    process.exit(0);
  };
  // a terminal sends it to all processes at once; whoever watches over the workers tells them
  process.on("SIGINT", () => undefined);
  process.once("SIGTERM", () => void close());
  process.on("message", (given: unknown) => {
    if (!isOurs(given)) return;
    const message = given as ToWorker; // ours, and nothing else comes from there
    if (message.tenon === "close") return void close();
    serving = start(flags, message);
    serving.then(
      ({ url, port, admin }) => tell({ tenon: "listening", url, port, ...(admin !== undefined && { admin }) }),
      async (error: unknown) => {
        const known = error instanceof CommandError;
        const why = `worker ${pid} does not start: ${messageOf(error)}`;
        const explanation = known
          ? error.explanation
          : { what: "the server does not run", why, todo: "run it with --workers 1 and --verbose" };
        await tell({ tenon: "failed", explanation, code: known ? error.code : "unexpected" });
        process.exit(1);
      },
    );
  });
  await tell({ tenon: "hello" });
  return new Promise(() => undefined);
}
