// Installs and builds what is missing, then runs a command: what makes `npm start` and `npm test` work from a fresh clone.
// Uses nothing but Node, since nothing may be installed yet.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, ".build-stamp");
const lock = join(root, ".build-lock");
const LOCK_WAIT_MS = 10 * 60_000;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Tenon needs Node 20.19 or later; this is ${process.version}.`);
  process.exit(1);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** Whether node_modules holds what the lock file says; npm keeps a list of what it installed. */
function isInstalled() {
  const wanted = readJson(join(root, "package-lock.json"))?.packages ?? {};
  const present = readJson(join(root, "node_modules", ".package-lock.json"))?.packages;
  if (!present) return false;
  return Object.entries(wanted).every(
    ([path, entry]) =>
      !path.includes("node_modules/") || entry.optional || entry.link || present[path]?.version === entry.version,
  );
}

/** Source files and build settings of the workspace, by path, size and time. */
function sourcesDigest() {
  const hash = createHash("sha256");
  const visit = (path) => {
    const stat = statSync(path);
    if (stat.isDirectory()) for (const name of readdirSync(path).sort()) visit(join(path, name));
    else hash.update(`${path}\0${stat.size}\0${stat.mtimeMs}\n`);
  };
  for (const file of ["tsconfig.json", "tsconfig.base.json", "package-lock.json", "scripts/bundle.mjs"])
    visit(join(root, file));
  for (const group of ["packages", "apps"]) {
    for (const name of readdirSync(join(root, group))) {
      for (const part of ["src", "tsconfig.json"]) {
        const path = join(root, group, name, part);
        if (existsSync(path)) visit(path);
      }
    }
  }
  return hash.digest("hex");
}

function isBuilt() {
  return (
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === sourcesDigest() &&
    existsSync(join(root, "apps/after-sales/dist/main.js"))
  );
}

function run(what, command, args) {
  console.error(`tenon: ${what}`);
  // their chatter goes to stderr: standard output belongs to the command
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32",
  });
  if (status !== 0) {
    console.error(`tenon: ${what} failed`);
    process.exit(status ?? 1);
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** One process at a time installs and builds; the lock of a dead one is taken over. */
function withLock(work) {
  const deadline = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch {
      const holder = Number(readJson(join(lock, "pid")) ?? 0);
      const abandoned =
        holder > 0
          ? !isAlive(holder)
          : Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > 5_000;
      if (abandoned || Date.now() > deadline) rmSync(lock, { recursive: true, force: true });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }
  }
  writeFileSync(join(lock, "pid"), String(process.pid));
  try {
    work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

if (!isInstalled() || !isBuilt()) {
  withLock(() => {
    if (!isInstalled())
      run("installing dependencies (npm ci)", "npm", ["ci", "--engine-strict", "--no-fund", "--no-audit"]);
    if (!isBuilt()) {
      run("building", process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-b"]);
      run("bundling", process.execPath, [join(root, "scripts/bundle.mjs")]);
      writeFileSync(stamp, sourcesDigest());
    }
  });
}

const [command, ...args] = process.argv.slice(2);
if (command) {
  const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH ?? ""}` };
  const child = spawn(command === "node" ? process.execPath : command, args, {
    stdio: "inherit",
    env,
    shell: process.platform === "win32" && command !== "node",
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // a terminal sends Ctrl-C to the whole group, so the child has it already
    process.on(signal, () => (signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal)));
  }
  child.on("error", (error) => {
    console.error(`tenon: ${command} could not be started: ${error.message}`);
    process.exit(127);
  });
  child.on("exit", (code, signal) =>
    process.exit(signal ? 128 + ({ SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal] ?? 1) : (code ?? 1)),
  );
}
