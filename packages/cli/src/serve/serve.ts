import cluster from "node:cluster";
import { readFileSync, statSync } from "node:fs";
import { ConfigError, cleanText, codeOf, isLoopback, messageOf } from "@tenon/core";
import { CommandError } from "../failure.ts";
import type { PlaceFlags } from "../place.ts";
import { WORKER_MARK } from "./messages.ts";
import { problemsError } from "./problems.ts";
import { checkFile, startServing } from "./serving.ts";
import { readServeFile, type ServeFile, type Settings } from "./settings.ts";
import { supervise } from "./supervisor.ts";

/** The options of `tenon serve`. */
export interface ServeFlags extends PlaceFlags {
  readonly config: string;
  readonly port?: number;
  readonly host?: string;
  readonly adminPort?: number;
  readonly workers?: number;
  readonly check?: boolean;
  readonly json?: boolean;
}

/** Milliseconds after which a process ends that functions of the user hold open. */
const LINGER_MS = 300;
/** Bytes of a file. */
const MAX_BYTES = 1024 * 1024;
/** Milliseconds one process has to end. */
const CLOSE_MS = 5_000;

const say = (text: string): void => {
  process.stderr.write(`tenon serve: ${cleanText(text)}\n`);
};

function readText(path: string): string {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > MAX_BYTES) {
    const why = `${path} has ${size} bytes; expected at most ${MAX_BYTES}`;
    const todo = "give the path of the file with --config";
    throw new CommandError({ what: "nothing is served", why, todo }, { code: "no_config" });
  }
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const missing = codeOf(cause) === "ENOENT";
    throw new CommandError(
      {
        what: "nothing is served",
        why: missing ? `there is no ${path}` : `${path} cannot be read: ${messageOf(cause)}`,
        todo: "give the path of the file with --config",
      },
      { code: "no_config", cause },
    );
  }
}

/** What a text that is neither YAML nor JSON, or no object, is told. */
async function readFile(text: string, flags: ServeFlags): Promise<ServeFile> {
  try {
    return await readServeFile(text, flags.config, process.env, flags);
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    const todo = `correct it; tenon serve --config ${flags.config} --check looks without serving`;
    throw new CommandError({ what: "nothing is served", why: cause.message, todo }, { code: cause.code, cause });
  }
}

/** Resolves at the first Ctrl-C or SIGTERM; a second one ends the process at once. */
function untilStopped(atOnce: () => void): Promise<undefined> {
  return new Promise((resolve) => {
    let asked = false;
    const stop = (): void => {
      if (asked) {
        atOnce();
        process.exit(130);
      }
      asked = true;
      resolve(undefined);
    };
    process.on("SIGINT", stop).on("SIGTERM", stop);
  });
}

/** Says that everything listens: one line for people, one of JSON for programs. */
function announce(
  { name, version, tools, workers, host, auth }: Settings,
  url: string,
  admin: string | undefined,
  json: boolean,
): void {
  const many = workers > 1 ? `, ${workers} workers` : "";
  const health = admin === undefined ? "" : `, health checks on ${admin}`;
  say(
    `${name} ${version} listens on ${url} (${tools.length} ${tools.length === 1 ? "tool" : "tools"}${many})${health}`,
  );
  if (!isLoopback(host) && !auth)
    say(`WARNING: ${host} can be reached by other computers, and anyone there may call: set mcp.authentication`);
  if (json)
    process.stdout.write(
      `${JSON.stringify({ name, version, url, admin: admin ?? null, workers, pid: process.pid })}\n`,
    );
}

async function serveWithWorkers({ settings }: ServeFile, text: string, json: boolean): Promise<void> {
  const { name, version, workers, adminPort } = settings;
  const supervisor = await supervise({ name, version, text, count: workers, adminPort, log: say });
  const stopped = untilStopped(supervisor.kill);
  try {
    const url = await Promise.race([supervisor.listening, supervisor.failed, stopped]);
    if (url === undefined) return;
    announce(settings, url, supervisor.admin, json);
    await Promise.race([stopped, supervisor.failed]);
  } finally {
    await supervisor.close();
  }
}

async function serveAlone(file: ServeFile, flags: ServeFlags): Promise<void> {
  const { adminPort } = file.settings;
  const serving = await startServing(file, { ...flags, workers: 1, adminPort, portGiven: flags.port !== undefined });
  announce(file.settings, serving.url, serving.admin, flags.json === true);
  await untilStopped(() => undefined);
  setTimeout(() => process.exit(1), CLOSE_MS).unref();
  await serving.close();
}

async function check(file: ServeFile, json: boolean): Promise<void> {
  const { name, version, tools } = file.settings;
  try {
    await checkFile(file);
  } finally {
    const problems = file.problems.all();
    if (json)
      process.stdout.write(
        `${JSON.stringify({ ok: problems.length === 0, name, version, tools: tools.map((tool) => tool.name), problems })}\n`,
      );
  }
  if (!json)
    process.stdout.write(
      `${cleanText(`${file.file}: ${name} ${version} can be served: ${tools.map((tool) => tool.name).join(", ")}`)}\n`,
    );
}

/**
 * `tenon serve`: serves what a file says until it is stopped.
 * @throws CommandError with everything that is wrong with the file, or why it cannot be served
 */
export async function serve(flags: ServeFlags): Promise<void> {
  // what functions of the user have opened must not keep a process that is done
  const linger = (): unknown => setTimeout(() => process.exit(), LINGER_MS).unref();
  try {
    if (cluster.isWorker && process.env[WORKER_MARK] !== undefined) {
      delete process.env[WORKER_MARK]; // it is not for what this process starts
      const { runServeWorker } = await import("./worker.ts");
      await runServeWorker(flags);
    }
    const text = readText(flags.config);
    const file = await readFile(text, flags);
    if (flags.check) return await check(file, flags.json === true);
    if (file.problems.all().length > 0) {
      await checkFile(file); // the rest of what is wrong
      throw problemsError(file.file, file.problems.all());
    }
    if (file.settings.workers > 1) await serveWithWorkers(file, text, flags.json === true);
    else await serveAlone(file, flags);
  } finally {
    linger();
  }
}
