import { Writable } from "node:stream";
import type { Implementation, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Era } from "@tenon/core";
import type { Service } from "../dispatch/dispatch.ts";
import { createLineAnswerer } from "../fast/stdio.ts";
import { StdioWire } from "./stdio-wire.ts";

/** Milliseconds that running calls get to finish after the client closed its end. */
const GRACE_MS = 2_000;

/** Stays on standard output, where an error without a listener would end the process with a trace. */
const heard = (): void => undefined;

/** The first line of the stack outside this file: who wrote to stdout. */
function callSite(): string {
  const lines = new Error().stack?.split("\n").slice(2) ?? [];
  return lines.find((line) => !line.includes(import.meta.url) && !line.includes("node:"))?.trim() ?? "unknown place";
}

/**
 * While a server speaks over standard output, a stray `console.log` would break the protocol: sends what user code writes
 * there to stderr, with one warning that names the place.
 * @returns the real standard output for the transport, and a function that puts everything back
 */
function guardStdout(log: Service["log"]): { stdout: Writable; restore: () => void } {
  const original = process.stdout.write;
  const real = original.bind(process.stdout);
  let warned = false;
  process.stdout.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    if (!warned) {
      warned = true;
      log(
        "warning",
        `standard output carries the protocol here; what was written to it went to stderr instead: ${callSite()}`,
      );
    }
    return process.stderr.write(chunk, ...(rest as [])); // the same overloads on both streams
  };
  // a client that closed only its reading end: the transport hears of it through the write that failed
  if (!process.stdout.listeners("error").includes(heard)) process.stdout.on("error", heard);
  const stdout = new Writable({
    write: (chunk: Uint8Array, _encoding, done) => {
      real(chunk, done);
    },
  });
  return {
    stdout,
    restore: () => {
      process.stdout.write = original;
    },
  };
}

/**
 * Serves one client over standard input and output until its end closes.
 * @param create makes the protocol instance once the client's era is known
 */
export function openStdio(
  create: (era: Era) => Server,
  service: Service,
  identity: Implementation,
): { done: Promise<void>; close(): Promise<void> } {
  const { log } = service;
  const { stdout, restore } = guardStdout(log);
  const wire = new StdioWire(stdout, createLineAnswerer(service, identity, stdout), service);
  const handle = serveStdio(({ era }) => create(era), {
    transport: wire,
    onerror: (error) => log("warning", "stdio", { error }),
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= handle.close().finally(restore);
    return closing;
  };
  return {
    // what still runs may finish: its answer is often read before the pipe is gone
    done: wire.ended.then(() => wire.idle(GRACE_MS)),
    close,
  };
}
