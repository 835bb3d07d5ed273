import { CAPABILITY_OF } from "@tenon/core/internal";
import type { Connection } from "../connection/connection.ts";

const WORDS: ReadonlySet<string> = new Set(Object.values(CAPABILITY_OF));

/**
 * What a request needs that a configuration or a registry says this replica cannot do, in a word of the contract. A list without
 * any such word says something else, and nothing here.
 */
export function missingWord(method: string, declared: readonly string[] | undefined): string | undefined {
  if (declared === undefined || !Object.hasOwn(CAPABILITY_OF, method)) return undefined;
  const needed: string = CAPABILITY_OF[method as keyof typeof CAPABILITY_OF]; // it is one of its keys
  if (declared.includes(needed)) return undefined;
  return declared.length === 0 || declared.some((word) => WORDS.has(word)) ? needed : undefined;
}

/** The same by its contract, or by what the connection announced; one that has ended says nothing any more. */
export function missingOn(method: string, connection: Connection): string | undefined {
  const { contract } = connection;
  const needed = Object.hasOwn(CAPABILITY_OF, method) ? CAPABILITY_OF[method as keyof typeof CAPABILITY_OF] : undefined; // it is a key
  if (!connection.gone && contract && needed !== undefined && !contract.declares(needed)) return needed;
  const capabilities = connection.gone ? undefined : connection.sdk.getServerCapabilities();
  if (!capabilities) return undefined;
  if (method.startsWith("tools/")) return capabilities.tools ? undefined : "tools";
  if (method.startsWith("prompts/")) return capabilities.prompts ? undefined : "prompts";
  if (method.startsWith("resources/")) return capabilities.resources ? undefined : "resources";
  return method.startsWith("tasks/") && !connection.hasTasks ? "tasks" : undefined;
}
