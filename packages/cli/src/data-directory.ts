import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where the command line keeps what it makes: `TENON_DATA_DIR`, else `.tenon` in the current directory. */
export const dataDirectory = (): string => process.env.TENON_DATA_DIR || ".tenon";

/**
 * Makes the data directory when it is missing, for its owner only, with a `.gitignore` that keeps it out of a repository:
 * keys lie in it.
 */
export function makeDataDirectory(path: string): void {
  if (existsSync(path)) return;
  mkdirSync(path, { recursive: true, mode: 0o700 });
  writeFileSync(join(path, ".gitignore"), "*\n");
}
