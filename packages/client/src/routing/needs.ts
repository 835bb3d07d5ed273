import { CAPABILITY_OF } from "@tenon/core/internal";
import type { Connection } from "../connection/connection.ts";

const WORDS: ReadonlySet<string> = new Set(Object.values(CAPABILITY_OF));

/** Whether a word is one of the contract's capabilities. */
export const isCapability = (word: string): boolean => WORDS.has(word);

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

/** The same by the contract that is in force on a connection, or what it announced; one that has ended says nothing any more. */
export function missingOn(method: string, connection: Connection): string | undefined {
  const { contract } = connection;
  if (contract && !connection.gone && Object.hasOwn(CAPABILITY_OF, method)) {
    const needed = CAPABILITY_OF[method as keyof typeof CAPABILITY_OF]; // it is one of its keys
    if (!contract.declares(needed)) return needed;
  }
  const capabilities = connection.gone ? undefined : connection.sdk.getServerCapabilities();
  if (!capabilities) return undefined;
  if (method.startsWith("tools/")) return capabilities.tools ? undefined : "tools";
  if (method.startsWith("prompts/")) return capabilities.prompts ? undefined : "prompts";
  if (method.startsWith("resources/")) return capabilities.resources ? undefined : "resources";
  return method.startsWith("tasks/") && !connection.hasTasks ? "tasks" : undefined;
}
