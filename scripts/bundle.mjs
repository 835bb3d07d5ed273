// Bundles each package's entry points from its sources into `dist`, beside the declarations `tsc -b` emits: a program then
// loads a few files instead of fifty, and starts faster. Dependencies and the other packages stay imports, except in the
// application: nobody installs it, so it has all in it, and starts in half the time.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What a package exports, and files that run on their own: `*-entry.ts` is started in a worker thread. */
function entryPoints(directory) {
  const { exports } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  const exported = Object.values(exports).flatMap((target) => target["@tenon/source"] ?? []);
  const started = readdirSync(join(directory, "src")).filter((name) => name.endsWith("-entry.ts"));
  return [...exported.map((path) => join(directory, path)), ...started.map((name) => join(directory, "src", name))];
}

async function bundle(directory, options) {
  const dist = join(directory, "dist");
  const { metafile } = await build({
    outbase: join(directory, "src"),
    outdir: dist,
    absWorkingDir: directory,
    metafile: true,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    sourcemap: true,
    logLevel: "warning",
    ...options,
  });
  const written = new Set(Object.keys(metafile.outputs).map((path) => join(directory, path)));
  removeStale(directory, written);
}

/**
 * What earlier builds left would be published too: chunks, which carry a hash of their content in their names, declarations of
 * sources that have moved, and the folders these were in.
 */
function removeStale(directory, written) {
  const dist = join(directory, "dist");
  const isStale = (name) => {
    const declared = /^(.*)\.d\.ts(?:\.map)?$/.exec(name)?.[1];
    if (declared !== undefined) return !existsSync(join(directory, "src", `${declared}.ts`));
    return /\.js(?:\.map)?$/.test(name) && !written.has(join(dist, name));
  };
  const entries = readdirSync(dist, { recursive: true, withFileTypes: true });
  const within = entries.map((entry) => ({ entry, name: relative(dist, join(entry.parentPath, entry.name)) }));
  for (const { entry, name } of within) if (entry.isFile() && isStale(name)) rmSync(join(dist, name));
  // the deepest first
  for (const { entry, name } of within.toSorted((a, b) => b.name.length - a.name.length)) {
    if (entry.isDirectory() && readdirSync(join(dist, name)).length === 0) rmdirSync(join(dist, name));
  }
}

const packages = readdirSync(join(root, "packages")).map((name) => join(root, "packages", name));
await Promise.all(packages.map((path) => bundle(path, { entryPoints: entryPoints(path), packages: "external" })));
await bundle(join(root, "apps/after-sales"), {
  entryPoints: ["src/main.ts"],
  sourcemap: false,
  external: ["better-sqlite3"], // native
  // chunks of our packages that only their own loading order needs
  logOverride: { "ignored-bare-import": "silent" },
  // some of what it depends on is CommonJS, which asks for Node's own modules with `require`
  banner: {
    js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);`,
  },
});
