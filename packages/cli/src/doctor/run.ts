import { existsSync } from "node:fs";
import type { ServerConfig } from "@tenon/client";
import { messageOf } from "@tenon/core";
import { createKeyRing, plainSecretKey, readContractKeys } from "@tenon/core/contract";
import { attempt, CommandError, ExitError, usageError } from "../failure.ts";
import { oneLine } from "../text.ts";
import { examine, nameOf } from "./doctor.ts";
import { exitCodeOf, reportText } from "./report.ts";
import type { ExamOptions, Target } from "./visit.ts";

/** The options of the command line. */
export interface DoctorFlags {
  readonly json?: boolean;
  readonly header?: readonly string[];
  readonly tokenEnv?: string;
  readonly timeoutMs: number;
  readonly contractKeysEnv?: string;
  readonly context?: string;
  readonly revision?: string;
}

const ENDS = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const;
const DEFAULT_KEYS = "TENON_CONTRACT_KEYS";
/** Milliseconds after the report that a look-up of the system may hold the program up. */
const LINGER_MS = 50;

function variable(name: string, option: string): string {
  const value = process.env[name];
  if (value !== undefined && value !== "") return value;
  throw usageError(`${option} names ${name}, which is not set`, `set ${name} in the environment`);
}

function headersOf({ header = [], tokenEnv }: DoctorFlags): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of header) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([^\r\n]*)$/.exec(line) ?? [];
    // its value may be secret
    if (name === undefined || value === undefined)
      throw usageError("--header is no header", 'write --header "Name: value"');
    headers[name] = value;
  }
  if (tokenEnv !== undefined) headers.Authorization = `Bearer ${variable(tokenEnv, "--token-env").trim()}`;
  return headers;
}

function keysOf({ contractKeysEnv }: DoctorFlags): Pick<ExamOptions, "keys" | "contractExpected"> {
  const text =
    contractKeysEnv === undefined ? process.env[DEFAULT_KEYS] : variable(contractKeysEnv, "--contract-keys-env");
  const { MCP_SERVER_SECRET: plain } = process.env;
  try {
    if (text === undefined || text.trim() === "") {
      return plain ? { keys: createKeyRing([plainSecretKey(plain)], Date.now(), 1) } : {};
    }
    return { keys: createKeyRing(readContractKeys(text)), contractExpected: contractKeysEnv !== undefined };
  } catch (error) {
    throw usageError(`${contractKeysEnv ?? DEFAULT_KEYS} cannot be used: ${messageOf(error)}`, "correct the variable");
  }
}

function contextOf({ context }: DoctorFlags): unknown {
  if (context === undefined) return undefined;
  try {
    return JSON.parse(context);
  } catch {
    throw usageError("--context is no JSON", `write --context '{"user_id":"alice"}'`);
  }
}

function urlTarget(text: string): Target[] {
  if (!URL.canParse(text)) throw usageError(`${text} is no address`, "write http://127.0.0.1:8000/mcp");
  const config = { url: text };
  return [{ name: nameOf(config), configured: false, config }];
}

interface Subjects {
  readonly targets: readonly Target[];
  readonly plainNames?: boolean;
}

/** Each replica is examined for itself; where a service is, only its registry knows. */
function placesOf(name: string, config: ServerConfig): Target[] {
  if ("replicas" in config) {
    const { replicas, ...common } = config;
    return replicas.map((replica) => {
      const { url, id = url } = typeof replica === "string" ? { url: replica } : replica;
      return { name: `${name} ${id}`, configured: true, replicaOf: name, config: { ...common, url } };
    });
  }
  if (!("service" in config)) return [{ name, configured: true, config }];
  process.stderr.write(
    oneLine(`tenon doctor: ${name} is left out: it is where a registry says; examine the address of one replica`) +
      "\n",
  );
  return [];
}

async function fromFile(path: string): Promise<Subjects> {
  return attempt("nothing was examined", async () => {
    const { loadConfig } = await import("@tenon/client/config");
    const config = await loadConfig(path, { onAuthorize: false });
    for (const { message } of config.warnings) process.stderr.write(`tenon doctor: ${oneLine(message)}\n`);
    const targets = Object.entries(config.servers).flatMap(([name, one]) => placesOf(name, one));
    if (targets.length === 0)
      throw usageError(`${path} has no server that is switched on`, 'name servers under "mcpServers"');
    return { targets, plainNames: config.client.naming === "plain" };
  });
}

/** `127.0.0.1:8000/mcp` and its like: an address without its beginning. */
const looksLikeHost = (text: string): boolean => /^[a-z0-9.[\]-]+(:\d+)?(\/\S*)?$/i.test(text) && /[.:]/.test(text);

async function subjects(words: readonly string[], command: readonly string[] | undefined): Promise<Subjects> {
  const isCommand = command !== undefined;
  if (isCommand && command.length < words.length) {
    throw usageError("an address or file and a command", "give one of the two; -- comes before the command");
  }
  const [first, ...rest] = words;
  if (first === undefined) {
    throw usageError("nothing to examine", "give an address, a configuration file, or -- and a command");
  }
  if (isCommand) {
    const config = { command: first, args: rest };
    return { targets: [{ name: nameOf(config), configured: false, config }] };
  }
  if (rest.length > 0) throw usageError("more than one thing to examine", "put -- before a command and its arguments");
  if (/^https?:\/\//i.test(first)) return { targets: urlTarget(first) };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(first))
    throw usageError("the address is not http or https", "write http:// or https://");
  if (!existsSync(first) && !/\.(json|jsonc|ya?ml)$/i.test(first)) {
    throw usageError(
      `${first} is neither an address nor a file`,
      `write http://${looksLikeHost(first) ? first : "…"}, or, for a command: tenon doctor -- ${first}`,
    );
  }
  if (!existsSync(first)) {
    const todo = "give the path of a configuration, or an address that begins with http:// or https://";
    throw new CommandError(
      { what: "nothing was examined", why: `there is no file ${first}`, todo },
      { code: "no_config" },
    );
  }
  return fromFile(first);
}

/**
 * Runs `tenon doctor` and prints what it found.
 * @param command what stood behind `--`; undefined where there was none
 * @throws ExitError unless all is well
 */
export async function doctor(
  words: readonly string[],
  command: readonly string[] | undefined,
  flags: DoctorFlags,
): Promise<void> {
  const headers = headersOf(flags);
  const keys = keysOf(flags);
  const context = contextOf(flags);
  const { targets, plainNames } = await subjects(words, command);
  const { timeoutMs, revision, json } = flags;
  // an end on purpose takes the processes that were started with it
  for (const [signal, code] of ENDS) process.once(signal, () => process.exit(code));
  const report = await examine(targets, {
    // a busy machine takes its time to start a program, which whoever waits for it does not count apart
    timeoutMs: timeoutMs - Math.min(performance.now(), timeoutMs / 2),
    headers,
    ...keys,
    ...(context !== undefined && { context }),
    ...(revision !== undefined && { revision }),
    ...(plainNames !== undefined && { plainNames }),
  });
  const text = json === true ? `${JSON.stringify(report)}\n` : reportText(report);
  await new Promise<void>((resolve) => process.stdout.write(text, () => resolve()));
  // a host name that nobody answers for keeps the system's look-up waiting, and that cannot be called off
  setTimeout(() => process.exit(), LINGER_MS).unref();
  const code = exitCodeOf(report);
  if (code !== 0) throw new ExitError(code);
}
