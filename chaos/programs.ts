import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { PROGRAM } from "../test/programs.ts";

const root = join(import.meta.dirname, "..");

/** The programs of a run, as arguments for `node`. */
export interface Programs {
  /** The after-sales desk's own program. */
  readonly desk: string;
  readonly agent: string;
  /** For `--import`. */
  readonly preload: string;
  remove(): void;
}

/**
 * Bundles today's sources: a bundle starts several times faster than sources under tsx. The drivers of the databases stay outside,
 * where the preload module finds them.
 */
export async function makePrograms(): Promise<Programs> {
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "tenon-chaos-"));
  await build({
    entryPoints: {
      desk: join(root, "apps/after-sales/src/main.ts"),
      agent: join(import.meta.dirname, "agent.ts"),
      preload: join(import.meta.dirname, "preload.ts"),
    },
    outdir: folder,
    ...PROGRAM,
    splitting: true,
  });
  const at = (name: string): string => join(folder, `${name}.mjs`);
  return {
    desk: at("desk"),
    agent: at("agent"),
    preload: at("preload"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
