import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";

// Programs that tests start, made of today's sources: a bundle starts several times faster than sources under tsx.

const root = fileURLToPath(new URL("..", import.meta.url));
/** One folder for a run of the tests, inside `node_modules` so that what stays outside a bundle is found. */
const FOLDER = "TENON_TEST_PROGRAMS";

/** How sources become a program; the drivers of databases stay outside. */
export const PROGRAM = {
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.19",
  conditions: ["@tenon/source"],
  mainFields: ["module", "main"], // an ES module where a package has one: some of the others cannot be bundled
  external: ["better-sqlite3", "pg", "pg-boss", "piscina"],
  // some dependencies are CommonJS, which asks for Node's own modules with `require`
  banner: {
    js: 'import { createRequire as ownRequire } from "node:module"; const require = ownRequire(import.meta.url);',
  },
  logLevel: "error",
} satisfies BuildOptions;

/** Vitest calls this before the first test: makes the folder of this run, and removes it afterwards. */
export default function programsOfThisRun(): () => void {
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "tenon-programs-"));
  process.env[FOLDER] = folder; // the workers inherit it
  return () => rmSync(folder, { recursive: true, force: true });
}

/** A file keeps the address it has in the repository, so that it finds what lies beside it. */
const ownAddress: Plugin = {
  name: "own-address",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      loader: "ts",
      contents: readFileSync(path, "utf8")
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href))
        .replaceAll("import.meta.dirname", JSON.stringify(join(path, ".."))),
    }));
  },
};

/**
 * Bundles TypeScript programs, with the sources of our packages, and returns what to start with `node`, in the same order.
 * Those given together share what they have in common. A program is made once for a run of the tests.
 */
export async function programs(files: readonly string[]): Promise<string[]> {
  const folder = process.env[FOLDER];
  if (!folder) throw new Error(`no ${FOLDER}: vitest.config.ts must name test/programs.ts in globalSetup`);
  const name = relative(root, files.length === 1 ? (files[0] ?? "") : join(files[0] ?? "", "..")).replaceAll(
    /\W+/g,
    "-",
  );
  const made = join(folder, name);
  if (!existsSync(made)) {
    const making = mkdtempSync(`${made}-`);
    await build({
      entryPoints: [...files],
      outdir: making,
      entryNames: "[name]",
      ...PROGRAM,
      splitting: files.length > 1,
      plugins: [ownAddress],
    });
    try {
      renameSync(making, made);
    } catch (error) {
      if (!existsSync(made)) throw error;
      rmSync(making, { recursive: true }); // another worker was faster
    }
  }
  return files.map((file) => join(made, `${basename(file, ".ts")}.mjs`));
}

/** One program, as an argument for `node`. @param from the address of the asking file: `import.meta.url` */
export async function program(file: string, from: string): Promise<string> {
  const [made = ""] = await programs([fileURLToPath(new URL(file, from))]);
  return made;
}
