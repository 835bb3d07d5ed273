import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

export const DATABASES = ["sqlite", "postgres"] as const;
export type DatabaseName = (typeof DATABASES)[number];

/** Safeguards that can be switched off, to see that they would be missed. */
export const SABOTAGES = ["idempotency", "journal", "lease", "audit"] as const;
export type Sabotage = (typeof SABOTAGES)[number];

interface Flags {
  readonly databases: readonly DatabaseName[];
  readonly seconds: number;
  readonly seed: number;
  readonly sabotage: Sabotage | undefined;
}

/** Both databases one after the other fit into the time that `.ci/run` has for them. */
const SECONDS = 40;

function oneOf<T extends string>(flag: string, given: string | undefined, allowed: readonly T[]): T | undefined {
  if (given === undefined) return undefined;
  const found = allowed.find((one) => one === given);
  if (found === undefined) throw new Error(`--${flag} ${given}: expected one of ${allowed.join(", ")}`);
  return found;
}

function whole(flag: string, given: string | undefined, most: number): number | undefined {
  if (given === undefined) return undefined;
  if (!/^\d+$/.test(given) || Number(given) > most)
    throw new Error(`--${flag} ${given}: expected a whole number up to ${most}`);
  return Number(given);
}

/** Reads the command line; what it cannot read ends the program with a line that says why. */
export function parseFlags(args: readonly string[]): Flags {
  try {
    const text = { type: "string" } as const;
    const { values } = parseArgs({
      args: [...args],
      options: { seconds: text, database: text, seed: text, sabotage: text },
    });
    const database = oneOf("database", values.database, DATABASES);
    return {
      databases: database === undefined ? DATABASES : [database],
      seconds: whole("seconds", values.seconds, 86_400) ?? SECONDS,
      seed: whole("seed", values.seed, 2 ** 32 - 1) ?? randomInt(2 ** 31),
      sabotage: oneOf("sabotage", values.sabotage, SABOTAGES),
    };
  } catch (error) {
    console.error(`chaos: ${error instanceof Error ? error.message : error}`);
    process.exit(2);
  }
}
