import type { ListRootsResult, Root } from "@modelcontextprotocol/client";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { EventSource } from "../types/events.ts";
import type { Roots } from "../types/questions.ts";

function checkRoot(root: unknown, where: string): Root {
  if (isRecord(root)) {
    checkOptions(root, ["uri", "name", "_meta"], where);
    const { uri } = root;
    // checked below: an object with a text `uri` is a root
    if (typeof uri === "string" && URL.canParse(uri) && new URL(uri).protocol === "file:") return root as Root;
  }
  throw new ConfigError(
    `${where} must be { uri: "file:///…", name? }, got ${JSON.stringify(root) ?? typeof root}; pathToFileURL(path).href of node:url makes one`,
    { code: "invalid_option" },
  );
}

/** Checks a list of roots. @throws ConfigError `invalid_option` */
export function checkRoots(roots: unknown, where: string): readonly Root[] {
  if (Array.isArray(roots)) return roots.map((root, index) => checkRoot(root, `${where}[${index}]`));
  throw new ConfigError(`${where} must be a list of roots or a function that gives one`, { code: "invalid_option" });
}

/** What a server is told that asks for the roots. @throws ConfigError `invalid_option` when the function gives none */
export async function listRoots(roots: Roots, source: EventSource): Promise<ListRootsResult> {
  const list = typeof roots === "function" ? await roots(source) : roots;
  return { roots: checkRoots(list, "roots()").map((root) => ({ ...root })) };
}
