// Everything about the code that can be checked without running it: format, lint, import direction, file sizes, types,
// package health. `npm run check`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const failures = [];

function step(what, command, args, options = {}) {
  const started = Date.now();
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8", ...options });
  const ok = status === 0;
  console.log(`${ok ? "ok  " : "FAIL"} ${what} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (!ok) {
    failures.push(what);
    console.log(`${stdout}${stderr}`.trim());
  }
}

step("format, lint, import direction, file sizes", "biome", ["ci", "--colors=off", "."]);
step("types of the packages", "tsc", ["-b"]);
step("types of tests, examples and scripts", "tsc", ["-p", "tsconfig.tests.json"]);

const out = mkdtempSync(join(tmpdir(), "tenon-check-"));
try {
  for (const name of readdirSync(join(root, "packages"))) {
    const directory = join(root, "packages", name);
    const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
    if (manifest.private) continue;
    step(`publint ${manifest.name}`, "publint", ["run", "--strict", directory]);
    step(`pack ${manifest.name}`, "npm", ["pack", "--silent", "--pack-destination", out], { cwd: directory });
    const tarball = join(out, `${manifest.name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`);
    step(`types resolve in ${manifest.name}`, "attw", [tarball, "--profile", "esm-only", "--no-color"]);
    // publint and attw do not look at our own condition: its target must be in the tarball
    const [{ "@tenon/source": source }] = Object.values(manifest.exports);
    const inTarball = `package/${source.slice(2)}`;
    step(`sources in ${manifest.name}`, "sh", ["-c", `tar -tzf "${tarball}" | grep -qx ${inTarball}`]);
  }
} finally {
  rmSync(out, { recursive: true, force: true });
}

console.log(failures.length === 0 ? "\nAll checks passed." : `\n${failures.length} failed: ${failures.join("; ")}`);
process.exit(failures.length === 0 ? 0 : 1);
