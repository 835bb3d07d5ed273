import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MessageChannel } from "node:worker_threads";
import { ConfigError } from "@tenon/core";
import { checkOptions, type OptionChecks, positive, zeroOrMore } from "@tenon/core/internal";
import type { Piscina } from "piscina";
import { type Content, make } from "../definition/content.ts";
import type { Run } from "../definition/definitions.ts";
import { ToolError } from "../errors.ts";
import type { ServerLog } from "../log.ts";
import { copiedFrom, type FromWorker, type WorkerAnswer, type WorkerTask } from "../worker-entry.ts";
import type { ToolContext } from "./context.ts";

/** The threads that run worker tools. */
export interface WorkerPoolOptions {
  /** Threads at once. Default: one less than the processors, at least one. */
  maxThreads?: number;
  /** Calls that may wait for a thread; one more is refused. Default 1,000. */
  maxQueue?: number;
  /** Milliseconds until an idle thread ends. Default 30,000. */
  idleTimeoutMs?: number;
  /** Milliseconds a cancelled function has to stop by itself before its thread is ended. Default 1,000. */
  cancelGraceMs?: number;
  /** Megabytes of heap of one thread. Default: node's. */
  maxHeapMb?: number;
}

const OPTIONS: OptionChecks<WorkerPoolOptions> = {
  maxThreads: positive("threads"),
  maxQueue: zeroOrMore("calls"),
  idleTimeoutMs: zeroOrMore("milliseconds"),
  cancelGraceMs: zeroOrMore("milliseconds"),
  maxHeapMb: positive("megabytes"),
};

/** Runs functions of worker modules. */
export interface Workers {
  /** A tool's function that runs in the module's thread. @throws ConfigError for an address that is no file */
  runner(file: URL, where: string): Run;
  /** Ends all threads, also busy ones. */
  close(): Promise<void>;
}

const isTypeScript = (file: string): boolean => /\.[cm]?tsx?$/.test(file);
const entry = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../worker-entry.ts" : "./worker-entry.js", import.meta.url),
);

/**
 * Flags for threads that must load TypeScript; undefined where none has to, or node strips types itself. tsx's own flag
 * (`--import tsx`, also when it was inherited) does not reach modules of a thread on node 20: its API does.
 */
function typeScriptFlags(file: string): string[] | undefined {
  const strips = "typescript" in process.features && Boolean(process.features.typescript);
  if (!isTypeScript(entry) && (strips || !isTypeScript(file))) return undefined;
  try {
    // resolving its API here would find the CommonJS one, which does not register in a thread of a process under tsx
    const tsx = new URL("./dist/esm/api/index.mjs", pathToFileURL(createRequire(file).resolve("tsx/package.json")))
      .href;
    const preload = `import { register } from ${JSON.stringify(tsx)}; register();`;
    // our own source is only run as TypeScript inside this repository, where packages resolve to their sources
    const source = isTypeScript(entry) ? ["--conditions=@tenon/source"] : [];
    return [...source, "--import", `data:text/javascript,${encodeURIComponent(preload)}`];
  } catch (cause) {
    throw new ConfigError(
      `The worker ${file} is TypeScript: install tsx as a dependency, or point to the built .js file`,
      { code: "worker", cause },
    );
  }
}

/** The error a worker's function threw, with its stack, so that the log shows where. */
function rebuild({ name, message, stack }: { name: string; message: string; stack?: string | undefined }): Error {
  const error = new Error(message);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return error;
}

function unwrap(answer: WorkerAnswer): unknown {
  switch (answer.kind) {
    case "value":
      return answer.value;
    case "content":
      return make(answer.blocks as Content["blocks"], answer.structured); // the helpers made them in the thread
    case "tool_error":
      throw new ToolError(answer.message, { code: answer.code, data: answer.data });
    case "error":
      throw rebuild(answer);
  }
}

/**
 * Makes the pool, which starts its first thread with the first call.
 * @param log hears of threads that fail outside a call
 * @param options limits of the pool
 */
export function createWorkers(log: ServerLog, options: WorkerPoolOptions = {}): Workers {
  checkOptions(options, OPTIONS, "createServer({ workers })");
  const { maxThreads = Math.max(1, availableParallelism() - 1), maxQueue = 1_000, idleTimeoutMs = 30_000 } = options;
  const { cancelGraceMs = 1_000, maxHeapMb } = options;
  // one pool for JavaScript, one for TypeScript where threads need a loader for it
  const pools = new Map<string, Promise<Piscina>>();
  let closed = false;

  async function open(flags: string[] | undefined): Promise<Piscina> {
    const { Piscina } = await import("piscina"); // servers without worker tools never load it
    const pool = new Piscina({
      filename: entry,
      minThreads: 0,
      maxThreads,
      maxQueue,
      idleTimeout: idleTimeoutMs,
      ...(flags && { execArgv: [...process.execArgv, ...flags] }),
      ...(maxHeapMb !== undefined && { resourceLimits: { maxOldGenerationSizeMb: maxHeapMb } }),
    });
    pool.on("error", (error: unknown) => log("error", "a worker thread failed", { error }));
    return pool;
  }
  const poolFor = (file: string): Promise<Piscina> => {
    const flags = typeScriptFlags(file);
    const key = flags?.join(" ") ?? "";
    const pool = pools.get(key) ?? open(flags);
    pools.set(key, pool);
    return pool;
  };

  async function run(file: URL, name: string, args: unknown, ctx: ToolContext): Promise<unknown> {
    if (closed) throw new ToolError("The server is closing", { code: "closing" });
    const pool = await poolFor(fileURLToPath(file));
    if (pool.queueSize >= maxQueue) throw new ToolError("The server is busy; try again later", { code: "busy" });
    if (ctx.signal.aborted) throw ctx.signal.reason;
    const { port1: port, port2: theirs } = new MessageChannel();
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const report = async (message: Exclude<FromWorker, { kind: "end" }>): Promise<void> => {
      if (message.kind === "progress") await ctx.progress(...message.progress);
      else await ctx.log[message.level](message.data, message.options);
    };
    port.on("message", (message: FromWorker) => {
      if (message.kind === "end") end();
      // nobody in the thread waits for it, so that its failure is ours to tell
      else report(message).catch((error: unknown) => log("warning", `${name}: a report could not be sent`, { error }));
    });
    const kill = new AbortController();
    let deadline: NodeJS.Timeout | undefined;
    const cancel = (): void => {
      port.postMessage("abort");
      deadline = setTimeout(() => kill.abort(), cancelGraceMs);
      deadline.unref();
    };
    ctx.signal.addEventListener("abort", cancel, { once: true });
    const task: WorkerTask = {
      module: file.href,
      name,
      args,
      port: theirs,
      about: copiedFrom(ctx),
    };
    try {
      const answer: WorkerAnswer = await pool.run(task, { transferList: [theirs], signal: kill.signal });
      await ended; // what it reported last has arrived
      return unwrap(answer);
    } finally {
      ctx.signal.removeEventListener("abort", cancel);
      clearTimeout(deadline);
      port.close();
    }
  }

  return {
    runner(file, where) {
      if (!(file instanceof URL) || file.protocol !== "file:") {
        throw new ConfigError(`${where}: worker must be a file address: new URL("./heavy.js", import.meta.url)`, {
          code: "worker",
          data: { worker: String(file) },
        });
      }
      return (args: unknown, ctx: ToolContext) => run(file, where, args, ctx);
    },
    async close() {
      closed = true;
      const open = [...pools.values()];
      pools.clear();
      await Promise.allSettled(open.map(async (pool) => (await pool).destroy()));
    },
  };
}
