// npm run bench -- <section> [--json] [--repetitions=n] [--ms=n]
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { flag } from "./lib/flag.mjs";
import { table } from "./lib/rows.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const SECTIONS = ["server", "list", "start", "memory", "client", "connect", "agent", "tasks"];

/** The peers are installed when they are first needed: nobody needs them to use or test Tenon. */
function install() {
  const installed = `${here}node_modules/.package-lock.json`;
  const versions = (file) =>
    Object.entries(JSON.parse(readFileSync(file, "utf8")).packages)
      .filter(([path, entry]) => path !== "" && !entry.optional)
      .map(([path, entry]) => `${path} ${entry.version}`)
      .join("\n");
  if (existsSync(installed) && versions(installed) === versions(`${here}package-lock.json`)) return;
  console.error("bench: installing the peers (npm ci)");
  // some peers ask for a newer Node than ours and run all the same; npm hands our own strictness down through the environment
  const args = ["ci", "--engine-strict=false", "--no-fund", "--no-audit", "--ignore-scripts"];
  const { status } = spawnSync("npm", args, {
    cwd: here,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32",
  });
  if (status === 0) return;
  console.error("bench: the peers could not be installed; run npm ci in benchmarks/ to see why");
  process.exit(status ?? 1);
}

const section = process.argv[2] ?? "all";
const wanted = section === "all" ? SECTIONS : [section];
const unknown = wanted.find((name) => !SECTIONS.includes(name));
if (unknown !== undefined) {
  console.error(`bench: there is no section "${unknown}"; sections: ${SECTIONS.join(", ")}, all`);
  process.exit(2);
}
install();
const json = process.argv.includes("--json");
const given = (name) => (flag(name) === undefined ? {} : { [name]: Number(flag(name)) });
const options = {
  ...given("repetitions"),
  ...given("ms"),
  log: (line) => console.error(`bench: ${line}`),
};
const rows = [];
for (const name of wanted) rows.push(...(await (await import(`./sections/${name}.mjs`)).run(options)));
if (!json) console.log(table(rows));
else console.log(JSON.stringify({ section, node: process.version, rows }));
process.exit(0);
