import { resolve } from "node:path";
import { ConfigError, isRecord, TenonError } from "@tenon/core";
import { didYouMean, shownValue } from "@tenon/core/internal";
import { type ConfigDocument, configError } from "@tenon/core/internal/document";
import { consulRegistry, fileRegistry, mcpRegistry, type Registry, staticRegistry } from "../registry/index.ts";
import { checkRouting } from "../routing/options.ts";
import type { RoutingOptions } from "../types/routing.ts";

/** What makes a registry of each kind; each refuses what it does not understand. */
const KINDS: Readonly<Record<string, (options: Record<string, unknown>, folder: string) => Registry>> = {
  // what the options are is checked by what is called
  static: ({ services, ...rest }) => {
    unexpected(rest);
    return staticRegistry(services as Parameters<typeof staticRegistry>[0]);
  },
  file: ({ path, ...rest }, folder) => {
    if (typeof path !== "string" || path === "")
      throw new ConfigError("path must be a text", { code: "invalid_option" });
    return fileRegistry(resolve(folder, path), rest as Parameters<typeof fileRegistry>[1]);
  },
  consul: (options) => consulRegistry(options as unknown as Parameters<typeof consulRegistry>[0]),
  mcp: (options) => mcpRegistry(options as unknown as Parameters<typeof mcpRegistry>[0]),
};

/** The kinds there are, for the published schema's test. */
export const REGISTRY_KINDS = Object.keys(KINDS);

function unexpected(rest: Record<string, unknown>): void {
  const [key] = Object.keys(rest);
  if (key !== undefined)
    throw new ConfigError(`has no option "${key}"; known options: services`, { code: "unknown_option" });
}

/** Runs what refuses options, and says where in the file they stand. */
function located<T>(document: ConfigDocument, key: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof TenonError)) throw cause;
    const line = document.lineOf([key]);
    const data = { file: document.file, line, key };
    throw new ConfigError(`${document.file}:${line}: ${key}: ${cause.message}`, { code: cause.code, data, cause });
  }
}

/**
 * The registry of a configuration, variables replaced; relative paths start at `folder`.
 * @throws ConfigError naming file, line and key
 */
export function readRegistry(document: ConfigDocument, value: unknown, folder: string): Registry | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) {
    throw configError(
      document,
      ["registry"],
      `must be an object such as { "type": "file", "path": … }, got ${shownValue(value)}`,
    );
  }
  const { type, ...options } = value;
  const make = typeof type === "string" && Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
  if (!make) {
    const near = typeof type === "string" ? didYouMean(type, REGISTRY_KINDS) : undefined;
    const hint = near ? `did you mean "${near}"?` : `expected one of ${REGISTRY_KINDS.join(", ")}`;
    throw configError(document, ["registry", "type"], `is ${shownValue(type)}; ${hint}`);
  }
  return located(document, "registry", () => make(options, folder));
}

/** How requests find a replica, as a file says it. @throws ConfigError naming file, line and key */
export function readRouting(document: ConfigDocument, value: unknown): RoutingOptions | undefined {
  if (value === undefined) return undefined;
  return located(document, "routing", () => {
    checkRouting(value, "routing");
    return value as RoutingOptions; // it was checked
  });
}
