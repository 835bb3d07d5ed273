import { watch } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { isRecord, messageOf } from "@tenon/core";
import { checkOptions, kindOf, milliseconds, type OptionChecks } from "@tenon/core/internal";
import { expectText } from "../expect.ts";
import { replicaOf, replicasOf } from "./entries.ts";
import { badRegistry, registryUnreachable } from "./request.ts";
import type { Registry } from "./types.ts";
import { watching } from "./watching.ts";

const MAX_BYTES = 4 * 1024 * 1024;
/** Milliseconds between two looks where the file system says nothing. */
const POLL_MS = 5_000;

/** Options of `fileRegistry`. */
export interface FileRegistryOptions {
  /** Milliseconds between two looks at the file, besides those when the file system tells of a change. Default 5,000. */
  pollMs?: number;
}

const OPTIONS: OptionChecks<FileRegistryOptions> = { pollMs: milliseconds };

async function readSmall(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > MAX_BYTES) throw badRegistry(path, `a file of more than ${MAX_BYTES} bytes`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/**
 * A registry in a file that is watched: JSON with an object of services, each a list of addresses or `{ url, id, capabilities }`. Write
 * it anew beside itself and rename it over the old one: a file that is half written says what cannot be used, and then what it said
 * last goes on to count.
 * @throws ConfigError `invalid_option`
 * @example fileRegistry("/etc/tenon/services.json") // { "kb": ["https://kb-1.example/mcp"] }
 */
export function fileRegistry(path: string, options: FileRegistryOptions = {}): Registry {
  expectText(path, "fileRegistry(path, options): path");
  checkOptions(options, OPTIONS, "fileRegistry(path, options)");
  const { pollMs = POLL_MS } = options;
  const file = resolve(path);
  return watching({
    look: async (service) => {
      let text: string;
      try {
        text = await readSmall(file);
      } catch (cause) {
        if (cause instanceof Error && "code" in cause && typeof cause.code === "string") {
          if (cause.code !== "bad_registry") throw registryUnreachable(file, messageOf(cause), cause);
        }
        throw cause;
      }
      let services: unknown;
      try {
        services = JSON.parse(text);
      } catch (cause) {
        throw badRegistry(file, messageOf(cause), cause);
      }
      if (!isRecord(services)) throw badRegistry(file, `it must be an object of services, got ${kindOf(services)}`);
      const entries = Object.hasOwn(services, service) ? services[service] : [];
      const wrong = `service "${service}" must be a list of addresses or { url, id, capabilities }`;
      if (!Array.isArray(entries) || entries.some((entry) => replicaOf(entry) === undefined))
        throw badRegistry(file, wrong);
      return { replicas: replicasOf(entries), pauseMs: pollMs };
    },
    listen: (changed) => {
      try {
        // the folder: a file is replaced by renaming
        const watcher = watch(dirname(file), { persistent: false }, changed);
        watcher.on("error", () => watcher.close()); // the folder is gone: looking now and then goes on
        return () => watcher.close();
      } catch {
        return () => {}; // not every file system can tell
      }
    },
  });
}
