import { execFile, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

/** A Postgres of our own, on a port that nobody else uses. */
export interface Cluster {
  readonly port: number;
  /** @param port of whoever stands in between; left out, the cluster's own */
  url(port?: number): string;
  start(): Promise<void>;
  /** @param how `immediate` ends it like a crash, `fast` ends all sessions first */
  stop(how: "fast" | "immediate"): Promise<void>;
}

const execute = promisify(execFile);
const WAIT_S = 30;
const INSTALLED = "/usr/lib/postgresql";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}

/** The folder of `initdb` and `pg_ctl`: Debian keeps them beside no path. */
function findPrograms(): string | undefined {
  const [newest] = existsSync(INSTALLED) ? readdirSync(INSTALLED).sort((a, b) => Number(b) - Number(a)) : [];
  if (newest !== undefined) return join(INSTALLED, newest, "bin");
  const { stdout } = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" });
  return stdout?.trim() || undefined;
}

/** Who may run it: Postgres refuses root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8").split("\n");
  const line = users.find((user) => user.startsWith("postgres:")) ?? users.find((user) => user.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  if (uid === undefined || gid === undefined) throw new Error("there is no user postgres or nobody to run Postgres");
  return { uid: Number(uid), gid: Number(gid) };
}

/**
 * Makes a cluster in an empty folder and starts it.
 * @returns why there is none, where Postgres is not installed
 */
export async function createCluster(folder: string): Promise<Cluster | { missing: string }> {
  const programs = findPrograms();
  if (programs === undefined) return { missing: "Postgres is not installed (Debian: apt-get install postgresql)" };
  const as = unprivileged();
  mkdirSync(folder, { recursive: true });
  if (as) {
    chownSync(folder, as.uid, as.gid);
    chmodSync(join(folder, ".."), 0o711); // it must be able to get there
  }
  const data = join(folder, "data");
  const run = async (program: string, args: readonly string[]): Promise<void> => {
    await execute(join(programs, program), args, { cwd: folder, ...as });
  };
  await run("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]);
  const port = await freePort();
  writeFileSync(
    join(data, "postgresql.auto.conf"),
    [
      `port = ${port}`,
      "listen_addresses = '127.0.0.1'",
      `unix_socket_directories = '${folder}'`,
      "max_connections = 200",
      "",
    ].join("\n"),
  );
  const cluster: Cluster = {
    port,
    url: (at = port) => `postgres://postgres@127.0.0.1:${at}/postgres`,
    start: () => run("pg_ctl", ["-D", data, "-w", "-t", String(WAIT_S), "-l", join(folder, "postgres.log"), "start"]),
    stop: (how) => run("pg_ctl", ["-D", data, "-w", "-t", String(WAIT_S), "-m", how, "stop"]),
  };
  await cluster.start();
  return cluster;
}
