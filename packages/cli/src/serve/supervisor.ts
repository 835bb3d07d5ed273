import cluster, { type Worker } from "node:cluster";
import { createServer } from "@tenon/server";
import { CommandError } from "../failure.ts";
import { type FromWorker, isOurs, type ToWorker, WORKER_MARK } from "./messages.ts";
import { mergeNumbers } from "./metrics.ts";

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
/** Milliseconds a worker may take to say that it is ready, or its numbers. */
const ANSWER_MS = 1_500;

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
  /** Where it answers health checks for all of them. */
  readonly admin: string | undefined;
  /** The endpoint, once all of them listen. @throws CommandError what is wrong, as the first worker says it */
  readonly listening: Promise<string>;
  /** Rejects when the workers end faster than they can be replaced. */
  readonly failed: Promise<never>;
  /** Ends all within seconds. */
  close(): Promise<void>;
  /** Ends all at once. */
  kill(): void;
}

/** One of the workers. */
interface Running {
  readonly worker: Worker;
  /** From 1; whoever takes its place has the same. */
  readonly place: number;
  /** When it began to listen. */
  since?: number;
  admin?: string;
  /** Why it does not start, in its own words. */
  failure?: CommandError;
}

const send = (worker: Worker, message: ToWorker): void => {
  if (worker.isConnected()) worker.send(message);
};

const ask = (admin: string | undefined, path: string): Promise<Response> =>
  fetch(`${admin}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) });

/** Whether every worker takes requests. @throws Error that says which do not */
async function allReady(running: ReadonlySet<Running>, count: number): Promise<void> {
  const listening = [...running].filter(({ since }) => since !== undefined);
  if (listening.length < count) throw new Error(`${listening.length} of ${count} workers listen`);
  await Promise.all(
    listening.map(async ({ worker, admin }) => {
      const { status } = await ask(admin, "/readyz");
      if (status !== 200) throw new Error(`worker ${worker.process.pid} is not ready`);
    }),
  );
}

/** The numbers of those workers that tell them in time. */
async function allNumbers(running: ReadonlySet<Running>): Promise<string> {
  const listening = [...running].filter(({ admin }) => admin !== undefined).sort((a, b) => a.place - b.place);
  const texts = await Promise.all(
    listening.map(async ({ place, admin }): Promise<[number, string][]> => {
      const response = await ask(admin, "/metrics").catch(() => undefined); // it ends, and will be replaced
      return response?.ok ? [[place, await response.text()]] : [];
    }),
  );
  return mergeNumbers(new Map(texts.flat()));
}

/**
 * Starts workers, which run this command again, and replaces those that end. The first one starts alone: what it makes in the
 * data directory is there for the others, and what is wrong is said once.
 * @throws ConnectionError when the admin port cannot be had; CommandError where this process is itself a worker of somebody's
 */
export async function supervise({ name, version, text, count, adminPort, log }: Supervised): Promise<Supervisor> {
  if (!cluster.isPrimary) {
    const why = "this process is a worker of a cluster already, and a worker has none of its own";
    const todo = "give --workers 1, or start it outside of that process manager";
    throw new CommandError({ what: "the server does not run", why, todo }, { code: "workers" });
  }
  const running = new Set<Running>();
  const early: number[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let port: number | undefined;
  /** What the workers are told to listen on instead of what the file and the command line say. */
  let asked: number | undefined;
  let closing: Promise<void> | undefined;
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined); // whoever waits for it is told
  // it serves nothing: it has the admin port
  const home = createServer({ name, version });
  const metrics = { text: () => allNumbers(running) };
  const needs = { workers: () => allReady(running, count) };
  const admin = adminPort === undefined ? undefined : await home.admin({ port: adminPort, needs, metrics });

  function start(worker: Worker): void {
    // a free port that was asked for is shared by those who ask for one, as long as somebody has it
    if (port !== undefined && ![...running].some(({ since }) => since !== undefined)) asked = port;
    const order = { text, workers: count, admin: admin !== undefined };
    send(worker, { tenon: "start", ...order, ...(asked !== undefined && { port: asked }) });
  }

  function freePlace(): number {
    const taken = new Set([...running].map(({ place }) => place));
    let place = 1;
    while (taken.has(place)) place += 1;
    return place;
  }

  /** Forks one; resolves with the endpoint when it listens. */
  function launch(): Promise<string> {
    const place = freePlace();
    const worker = cluster.fork({ [WORKER_MARK]: "1" });
    const one: Running = { worker, place };
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
        if (message.tenon === "hello") start(worker);
        else if (message.tenon === "failed") {
          one.failure = new CommandError(message.explanation, { code: message.code });
        } else {
          clearTimeout(late);
          one.since = Date.now();
          if (message.admin !== undefined) one.admin = message.admin;
          port ??= message.port;
          resolve(message.url);
        }
      });
      worker.once("exit", (code: number | null, signal: string | null) => {
        clearTimeout(late);
        running.delete(one);
        const how = signal ? `by ${signal}` : `with exit code ${code ?? "unknown"}`;
        const why = `a worker ended ${how} before it listened`;
        const todo = "its last words are above; --workers 1 runs the same in one process";
        reject(
          one.failure ?? new CommandError({ what: "the server does not run", why, todo }, { code: "worker_ended" }),
        );
        if (one.since !== undefined) replace(`worker ${worker.process.pid} ended ${how}`, one.since);
      });
    });
  }

  /**
   * Puts another one in the place of one that ended, later where that happens often.
   * @param since when it began to listen; undefined: it never did
   */
  function replace(what: string, since?: number, failure?: CommandError): void {
    if (closing) return;
    const now = Date.now();
    const wasEarly = since === undefined || now - since < EARLY_MS;
    if (wasEarly) early.push(now);
    while (early.length > 0 && (early[0] ?? now) < now - WINDOW_MS) early.shift();
    if (early.length > Math.max(MIN_EARLY, 2 * count)) {
      const last = `${early.length} workers ended early within ${WINDOW_MS / 1_000} seconds; the last: ${what}`;
      const why = failure ? [failure.explanation.why].flat() : [last];
      const todo = "their last words are above; --workers 1 runs the same in one process";
      fail(new CommandError({ what: "the workers end as fast as they start", why, todo }, { code: "crash_loop" }));
      return;
    }
    const delay = wasEarly ? Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (early.length - 1)) : 0;
    log(`${what}; another one takes its place${delay > 0 ? ` in ${delay} ms` : ""}`);
    const timer = setTimeout(() => {
      timers.delete(timer);
      launch().then(
        () => log("a new worker listens"),
        (error: unknown) =>
          replace("a worker does not start", undefined, error instanceof CommandError ? error : undefined),
      );
    }, delay);
    timers.add(timer);
  }

  function kill(): void {
    for (const { worker } of running) worker.process.kill("SIGKILL");
  }

  async function end(): Promise<void> {
    for (const timer of timers) clearTimeout(timer);
    const ended = [...running].map(
      ({ worker }) => new Promise<void>((resolve) => void worker.once("exit", () => resolve())),
    );
    for (const { worker } of running) send(worker, { tenon: "close" });
    const late = setTimeout(kill, CLOSE_MS);
    await Promise.all(ended);
    clearTimeout(late);
    await home.close();
  }

  async function startAll(): Promise<string> {
    const url = await launch();
    if (!closing) await Promise.all(Array.from({ length: count - 1 }, launch));
    return url;
  }

  const listening = startAll();
  listening.catch(() => undefined); // whoever waits for it is told
  return {
    admin: admin?.url,
    listening,
    failed,
    kill,
    close() {
      closing ??= end();
      return closing;
    },
  };
}
