import cluster, { type Worker } from "node:cluster";
import { createServer } from "@tenon/server";
import { CommandError } from "../failure.ts";
import { type FromWorker, isOurs, type ToWorker } from "./messages.ts";

/** Milliseconds a worker may take to listen. */
const START_MS = 60_000;
/** Milliseconds the workers have to end before they are killed. */
const CLOSE_MS = 5_000;
/** A worker that ends so many milliseconds after it began to listen, or before, has ended early. */
const EARLY_MS = 10_000;
/** Early ends are counted over so many milliseconds. */
const WINDOW_MS = 60_000;
/** Early ends that are borne, at least; twice the number of workers where that is more. */
const MIN_EARLY = 5;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/** Milliseconds a worker may take to say that it is ready. */
const READY_MS = 1_500;

/** What the workers serve. */
export interface Supervised {
  readonly name: string;
  readonly version: string;
  /** The text of the file. */
  readonly text: string;
  readonly count: number;
  readonly adminPort: number | undefined;
  /** Hears of workers that end. */
  readonly log: (line: string) => void;
}

/** Workers that serve one port together. */
export interface Supervisor {
  readonly url: string;
  /** Where it answers health checks for all of them. */
  readonly admin: string | undefined;
  /** Rejects when the workers end faster than they can be replaced. */
  readonly failed: Promise<never>;
  /** Ends all within seconds. */
  close(): Promise<void>;
  /** Ends all at once. */
  kill(): void;
}

/** One place among the workers, whoever fills it. */
interface Running {
  readonly worker: Worker;
  /** When it began to listen. */
  since?: number;
  admin?: string;
  /** Why it does not start, in its own words. */
  failure?: CommandError;
}

type Listening = Extract<FromWorker, { tenon: "listening" }>;

const send = (worker: Worker, message: ToWorker): void => {
  if (worker.isConnected()) worker.send(message);
};

const howItEnded = (code: number | null, signal: string | null): string =>
  signal ? `by ${signal}` : `with exit code ${code ?? "unknown"}`;

/** Whether every worker takes requests. @throws Error that says which do not */
async function allReady(running: ReadonlySet<Running>, count: number): Promise<void> {
  const listening = [...running].filter(({ since }) => since !== undefined);
  if (listening.length < count) throw new Error(`${listening.length} of ${count} workers listen`);
  await Promise.all(
    listening.map(async ({ worker, admin }) => {
      const { status } = await fetch(`${admin}/readyz`, { signal: AbortSignal.timeout(READY_MS) });
      if (status !== 200) throw new Error(`worker ${worker.process.pid} is not ready`);
    }),
  );
}

/**
 * Starts workers, which run this command again, and replaces those that end. The first one starts alone: what it makes in the
 * data directory is there for the others, and what is wrong is said once.
 * @throws CommandError what is wrong, as the first worker says it; ConnectionError when the admin port cannot be had
 */
export async function supervise({ name, version, text, count, adminPort, log }: Supervised): Promise<Supervisor> {
  const running = new Set<Running>();
  const early: number[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let port: number | undefined;
  /** What the workers are told to listen on instead of what the file and the command line say. */
  let asked: number | undefined;
  let closing = false;
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined); // whoever waits for it is told
  const home = createServer({ name, version });
  const admin =
    adminPort === undefined
      ? undefined
      : await home.admin({ port: adminPort, needs: { workers: () => allReady(running, count) } });

  /** Forks one; resolves when it listens. */
  function launch(): Promise<Listening> {
    const worker = cluster.fork();
    const one: Running = { worker };
    running.add(one);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        log(`worker ${worker.process.pid} has not listened within ${START_MS / 1_000} seconds`);
        worker.process.kill("SIGKILL");
      }, START_MS);
      worker.on("error", () => undefined); // a channel that is gone: the end of the worker says it
      worker.on("message", (given: unknown) => {
        if (!isOurs(given)) return;
        const message = given as FromWorker; // ours, and nothing else comes from there
        if (message.tenon === "hello") {
          const anybody = [...running].some(({ since }) => since !== undefined);
          // a free port that was asked for is shared by those who ask for one, as long as somebody has it
          if (!anybody && port !== undefined) asked = port;
          const order = { text, workers: count, admin: admin !== undefined };
          send(worker, { tenon: "start", ...order, ...(asked !== undefined && { port: asked }) });
        } else if (message.tenon === "failed") {
          one.failure = new CommandError(message.explanation, { code: message.code });
        } else {
          clearTimeout(late);
          one.since = Date.now();
          if (message.admin !== undefined) one.admin = message.admin;
          port ??= message.port;
          resolve(message);
        }
      });
      worker.once("exit", (code: number | null, signal: string | null) => {
        clearTimeout(late);
        running.delete(one);
        const how = howItEnded(code, signal);
        const why = {
          what: "the server does not run",
          why: `a worker ended ${how} before it listened`,
          todo: "its last words are above",
        };
        reject(one.failure ?? new CommandError(why, { code: "worker_ended" }));
        if (one.since !== undefined) replace(one.since, how, worker.process.pid);
      });
    });
  }

  /** Puts another one in the place of one that ended, later where that happens often. @param since when it began to listen */
  function replace(since: number | undefined, how: string, pid?: number, failure?: CommandError): void {
    if (closing) return;
    const now = Date.now();
    const wasEarly = since === undefined || now - since < EARLY_MS;
    if (wasEarly) early.push(now);
    while (early.length > 0 && (early[0] ?? now) < now - WINDOW_MS) early.shift();
    if (early.length > Math.max(MIN_EARLY, 2 * count)) {
      const last = `${early.length} workers ended within ${WINDOW_MS / 1_000} seconds, the last one ${how}`;
      const why = failure ? [failure.explanation.why].flat() : [last];
      const todo = "their last words are above; run it with --workers 1 to see what ends it";
      fail(new CommandError({ what: "the workers end as fast as they start", why, todo }, { code: "crash_loop" }));
      return;
    }
    const delay = wasEarly ? Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (early.length - 1)) : 0;
    const who = pid === undefined ? "a worker" : `worker ${pid}`;
    log(`${who} ended ${how}; another one takes its place${delay > 0 ? ` in ${delay} ms` : ""}`);
    const timer = setTimeout(() => {
      timers.delete(timer);
      launch().then(
        () => log("a new worker listens"),
        (error: unknown) =>
          replace(undefined, "before it listened", undefined, error instanceof CommandError ? error : undefined),
      );
    }, delay);
    timers.add(timer);
  }

  function kill(): void {
    for (const { worker } of running) worker.process.kill("SIGKILL");
  }

  async function close(): Promise<void> {
    closing = true;
    for (const timer of timers) clearTimeout(timer);
    const ended = [...running].map(
      ({ worker }) =>
        new Promise<void>((resolve) => {
          if (worker.isDead()) resolve();
          else worker.once("exit", () => resolve());
        }),
    );
    for (const { worker } of running) send(worker, { tenon: "close" });
    const late = setTimeout(kill, CLOSE_MS);
    await Promise.all(ended);
    clearTimeout(late);
    await home.close();
  }

  try {
    const { url } = await launch();
    await Promise.all(Array.from({ length: count - 1 }, launch));
    return { url, admin: admin?.url, failed, close, kill };
  } catch (error) {
    await close();
    throw error;
  }
}
