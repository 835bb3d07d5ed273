import { isRecord } from "@tenon/core";
import type { CompiledInput } from "../definition/arguments.ts";
import type { ServerLog } from "../log.ts";

/** Names told per definition: they come from callers, who may send any number. */
const MAX_NAMES = 20;
const MAX_LENGTH = 100;
const told = new WeakMap<CompiledInput, Set<string>>();

/**
 * Says in the server's own log, at level debug, which arguments were left out because the schema does not name them: once per
 * definition and name. Values are never written.
 * @param given the arguments of a call that was read without a problem
 */
export function noteLeftOut(log: ServerLog, what: string, input: CompiledInput, given: unknown): void {
  const { names } = input;
  if (!names || !isRecord(given)) return;
  const extra = Object.keys(given).filter((key) => !names.has(key));
  if (extra.length === 0) return;
  const known = told.get(input) ?? new Set();
  told.set(input, known);
  const fresh: string[] = [];
  for (const key of extra.map((key) => key.slice(0, MAX_LENGTH))) {
    if (known.has(key) || known.size >= MAX_NAMES) continue;
    known.add(key);
    fresh.push(key);
  }
  if (fresh.length === 0) return;
  log("debug", `${what}: arguments that its schema does not name were left out`, {
    names: fresh,
    todo: 'unknownArguments: "reject" refuses such calls instead',
  });
}
