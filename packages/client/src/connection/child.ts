import { ChildProcess } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { TenonError } from "@tenon/core";
import type { StdioServerConfig } from "../types/servers.ts";
import { baseEnvironment } from "./environment.ts";
import { MAX_RESPONSE_BYTES, tooLarge } from "./http.ts";
import { launchOf } from "./launch.ts";
import { LineBuffer } from "./lines.ts";
import { secretsOf, withoutSecrets } from "./secrets.ts";
import { bounded } from "./time.ts";

const TAIL = 2_000;
/** Milliseconds for what a process wrote before it exited. */
const DRAIN_MS = 250;
/** Longest line of a child's standard error that is passed on as one. */
const MAX_LINE = 8_000;
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function kill(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it ended in between
  }
}

/** Makes whole lines of pieces; a line that is too long is passed on in pieces, one without an end when `end` is called. */
function lineSplitter(onLine: (line: string) => void): { push(text: string): void; end(): void } {
  let rest = "";
  const pass = (line: string) => {
    for (let at = 0; at < line.length; at += MAX_LINE) onLine(line.slice(at, at + MAX_LINE));
  };
  return {
    push: (text) => {
      const lines = (rest + text).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) pass(line);
      if (rest.length <= MAX_LINE) return;
      pass(rest);
      rest = "";
    },
    end: () => {
      pass(rest);
      rest = "";
    },
  };
}

/** What the transport of a child process tells. */
export interface ChildListeners {
  /** A line of its standard error. Left out: what it writes goes to the standard error of this process. */
  readonly onStderr?: ((line: string) => void) | undefined;
  /** A message was too large and is gone; `id` says of which request it was the answer. */
  readonly onTooLarge: (id: string | number, error: TenonError) => void;
}

/** A server as a child process whose `close` ends within 1.5 s: end of input, SIGTERM, SIGKILL. */
export class ChildTransport extends StdioClientTransport {
  readonly #secrets: readonly string[];
  #tail = "";
  #ending: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(server: string, config: StdioServerConfig, { onStderr, onTooLarge }: ChildListeners) {
    const { command, args, cwd, env } = launchOf(config);
    super({
      command,
      args: [...args],
      ...(cwd !== undefined && { cwd }),
      env: { ...baseEnvironment(), ...env },
      stderr: "pipe",
    });
    this.#secrets = secretsOf(env ?? {});
    const limit = config.maxResponseBytes ?? MAX_RESPONSE_BYTES;
    const buffer = new LineBuffer(limit, (id) => {
      if (id !== undefined) onTooLarge(id, tooLarge(server, limit));
    });
    // the SDK's transport has no place for a buffer of another kind; its version is pinned and case B4 watches over this
    Object.assign(this, { _readBuffer: buffer });
    const lines = onStderr && lineSplitter(onStderr);
    // a character may come in two pieces
    const decoder = new StringDecoder("utf8");
    this.stderr?.on("data", (chunk: Buffer) => {
      const text = decoder.write(chunk);
      this.#tail = (this.#tail + text).slice(-TAIL);
      if (lines) lines.push(text);
      else process.stderr.write(chunk);
    });
    // a process that dies says why in its last words, often without an end of the line
    this.stderr?.on("close", () => lines?.end());
  }

  /** The last lines the process wrote to its standard error. */
  get lastWords(): string {
    return withoutSecrets(this.#tail.trim(), this.#secrets);
  }

  /** How the process ended, in words; undefined while it runs. */
  get ending(): string | undefined {
    return this.#ending;
  }

  override async start(): Promise<void> {
    try {
      await super.start();
    } catch (error) {
      // Node lists the arguments in it, and whoever prints the error prints them
      if (error instanceof Error) Reflect.deleteProperty(error, "spawnargs");
      throw error;
    }
    // the SDK keeps the process to itself, and waits for its end; one that closed its output never answers again
    const child: unknown = Reflect.get(this, "_process");
    if (!(child instanceof ChildProcess)) return;
    child.stdout?.once("end", () => void this.close());
    child.stdin?.once("error", () => void this.close());
    child.once("exit", (code, signal) => {
      this.#ending = signal === null ? `its process exited with code ${code}` : `its process was ended by ${signal}`;
      // a process of its own may hold the pipes open for ever; what is still in them is read first
      setTimeout(() => {
        for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
        void this.close();
      }, DRAIN_MS).unref();
    });
  }

  override close(): Promise<void> {
    const pid = this.pid;
    if (this.#closing) return this.#closing; // whoever asks second waits for the process as well
    if (pid === null) return super.close();
    this.#closing = this.#end(pid);
    return this.#closing;
  }

  async #end(pid: number): Promise<void> {
    const closing = super.close();
    await bounded(closing, 600);
    if (isAlive(pid)) {
      kill(pid, "SIGTERM");
      await bounded(closing, 500);
    }
    if (isAlive(pid)) {
      kill(pid, "SIGKILL");
      await bounded(closing, 300);
    }
  }
}
