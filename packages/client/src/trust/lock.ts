import { readFile } from "node:fs/promises";
import { ConfigError, codeOf, isRecord, messageOf, TenonError } from "@tenon/core";
import { expectList } from "../expect.ts";
import { exclusively, replaceFile } from "../file-lock.ts";
import { definitionOf, fingerprint, type ToolDefinition, type TrustedTool } from "./definition.ts";

/** One accepted tool. */
export interface PinnedTool {
  readonly fingerprint: string;
  readonly definition: ToolDefinition;
}

/** What was accepted of one server. */
export interface PinnedServer {
  /** The command that may start it, as `commandLineOf` tells it. */
  readonly start?: string;
  /** By wire name. */
  readonly tools: Readonly<Record<string, PinnedTool>>;
}

/** The content of a `tenon.lock`. */
export interface Lock {
  readonly version: 1;
  /** By configured server name. */
  readonly servers: Readonly<Record<string, PinnedServer>>;
}

const EMPTY: Lock = { version: 1, servers: {} };

function bad(path: string, why: string, cause?: unknown): never {
  throw new ConfigError(
    `${path} ${why}. Nothing it pins can be trusted until it is repaired: take its last good version, or delete it and accept every tool again`,
    { code: "bad_lock", data: { path }, ...(cause !== undefined && { cause }) },
  );
}

function parse(path: string, text: string): Lock {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    return bad(path, `is not JSON (${cause instanceof Error ? cause.message : "?"})`, cause);
  }
  if (!isRecord(value) || !isRecord(value.servers)) return bad(path, 'must be an object with "version" and "servers"');
  if (value.version !== 1)
    return bad(path, `has version ${JSON.stringify(value.version)}, this program reads version 1`);
  for (const [server, entry] of Object.entries(value.servers)) {
    if (!isRecord(entry) || !isRecord(entry.tools))
      return bad(path, `has no "tools" for server ${JSON.stringify(server)}`);
    if (entry.start !== undefined && typeof entry.start !== "string") return bad(path, `has a "start" that is no text`);
    for (const [name, tool] of Object.entries(entry.tools)) {
      const where = `tool ${JSON.stringify(name)} of server ${JSON.stringify(server)}`;
      if (!isRecord(tool) || !isRecord(tool.definition)) return bad(path, `has no definition for ${where}`);
      // what is compared and what is shown to a person must be the same thing; the cast is checked by this very line
      if (tool.fingerprint !== fingerprint(tool.definition as unknown as ToolDefinition)) {
        return bad(path, `has a fingerprint that does not belong to the definition beside it, for ${where}`);
      }
    }
  }
  return value as unknown as Lock; // every part was looked at above
}

/** What the system says against reading or writing the file, as an error of its own: it is no fault of any server. */
function unusable(path: string, what: "read" | "written", cause: unknown): ConfigError {
  const reason = messageOf(cause);
  return new ConfigError(`${path} cannot be ${what}: ${reason}`, { code: "bad_lock", data: { path }, cause });
}

/**
 * Reads a lock file; one that does not exist yet is empty.
 * @throws ConfigError `bad_lock` for one that is damaged, was changed by hand or cannot be read
 */
export async function readLock(path: string): Promise<Lock> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return EMPTY;
    throw unusable(path, "read", error);
  }
  return parse(path, text);
}

/** Keys in one order, so that a change of one tool is a change of its lines only. */
function sorted<T>(record: Readonly<Record<string, T>>): [string, T][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isRecord(value)) return value;
  return Object.fromEntries(sorted(value).map(([key, item]) => [key, inOrder(item)]));
}

async function write(path: string, { version, servers }: Lock): Promise<void> {
  await replaceFile(path, `${JSON.stringify({ version, servers: inOrder(servers) }, null, 2)}\n`, 0o644);
}

/**
 * Changes a lock file: reads it anew, writes what `change` returns, as one step among processes.
 * @throws ConfigError `bad_lock` also where it cannot be written, ConnectionError `lock_busy`
 */
export async function updateLock(path: string, change: (lock: Lock) => Lock): Promise<Lock> {
  try {
    return await exclusively(path, async () => {
      const before = await readLock(path);
      const after = change(before);
      if (after !== before) await write(path, after);
      return after;
    });
  } catch (error) {
    throw codeOf(error) !== undefined && !(error instanceof TenonError) ? unusable(path, "written", error) : error;
  }
}

function withServer(lock: Lock, server: string, change: (entry: PinnedServer) => PinnedServer): Lock {
  const entry = Object.hasOwn(lock.servers, server) ? lock.servers[server] : undefined;
  const entries = Object.entries(lock.servers).filter(([name]) => name !== server);
  return { version: 1, servers: Object.fromEntries([...entries, [server, change(entry ?? { tools: {} })]]) };
}

/** The accepted form of a tool, or undefined. */
export function pinnedTool(lock: Lock, server: string, wireName: string): PinnedTool | undefined {
  const entry = Object.hasOwn(lock.servers, server) ? lock.servers[server] : undefined;
  return entry && Object.hasOwn(entry.tools, wireName) ? entry.tools[wireName] : undefined;
}

/** A lock with these tools in the form they have now. */
export function withTools(lock: Lock, tools: readonly TrustedTool[]): Lock {
  let after = lock;
  for (const tool of tools) {
    const definition = definitionOf(tool);
    const pinned: PinnedTool = { fingerprint: fingerprint(definition), definition };
    after = withServer(after, tool.server, (entry) => {
      const others = Object.entries(entry.tools).filter(([name]) => name !== tool.wireName);
      return { ...entry, tools: Object.fromEntries([...others, [tool.wireName, pinned]]) };
    });
  }
  return after;
}

/**
 * Accepts tools as they are now: their definitions go into the lock file, over older ones. Other tools stay as they were.
 *
 * @example await acceptTools("tenon.lock", await client.listTools("mail"))
 * @throws ConfigError `bad_lock`, ConnectionError `lock_busy`
 */
export async function acceptTools(path: string, tools: readonly TrustedTool[]): Promise<Lock> {
  expectList(tools, "acceptTools(file, tools): tools");
  return updateLock(path, (lock) => withTools(lock, tools));
}

/** Accepts the command that starts a server, as `commandLineOf` tells it. */
export async function acceptStart(path: string, server: string, commandLine: string): Promise<Lock> {
  return updateLock(path, (lock) => withServer(lock, server, (entry) => ({ ...entry, start: commandLine })));
}

/** Takes a server out of the lock file: its tools and its command count as never seen. */
export async function forgetServer(path: string, server: string): Promise<Lock> {
  return updateLock(path, (lock) => {
    if (!Object.hasOwn(lock.servers, server)) return lock;
    return { ...lock, servers: Object.fromEntries(Object.entries(lock.servers).filter(([name]) => name !== server)) };
  });
}
