import { TenonError } from "@tenon/core";
import type { TenonServer } from "@tenon/server";
import { CommandError } from "../failure.ts";
import { openNumbers } from "../numbers.ts";
import type { PlaceFlags } from "../place.ts";
import { buildServer, type Surroundings } from "./build.ts";
import { problemsError } from "./problems.ts";
import type { ServeFile } from "./settings.ts";
import { openKept } from "./stores.ts";

/** A file's server, listening. */
export interface Serving {
  readonly url: string;
  /** The TCP port that was taken. */
  readonly port: number;
  /** Where it answers health checks. */
  readonly admin: string | undefined;
  /** Ends it within seconds, and closes what it keeps. */
  close(): Promise<void>;
}

/** How a process serves a file, besides what the file says. */
export interface ServingOptions extends PlaceFlags {
  /** Processes that serve the same. */
  readonly workers: number;
  /** Port of the health checks of this process; undefined: none. */
  readonly adminPort: number | undefined;
  /** Whether the port is from the command line, where the file says another. */
  readonly portGiven: boolean;
}

/** Finds everything that is wrong without opening anything: no port, no file. @throws CommandError with all problems */
export async function checkFile(file: ServeFile): Promise<void> {
  const server = await buildServer(file, { sessions: true });
  await server?.close();
  const problems = file.problems.all();
  if (problems.length > 0) throw problemsError(file.file, problems);
}

/** Where the file is wrong, by what listening fails with; everything else is about the port. */
const PLACES: ReadonlyArray<readonly [codes: readonly string[], key: string]> = [
  [["tls"], "ssl_certfile"],
  [["allowed_hosts"], "allowed_hosts"],
  [["trusted_proxies"], "trusted_proxies"],
  [["schema", "contract_keys", "contract_drift"], "mcp"],
];

async function listen(server: TenonServer, { settings, file, problems }: ServeFile, portGiven: boolean) {
  const { port, host, endpoint: path, tls } = settings;
  try {
    return await server.listen({ port, host, path, ...(tls && { tls }) });
  } catch (error) {
    if (!(error instanceof TenonError)) throw error;
    const [, key = "port"] = PLACES.find(([codes]) => codes.includes(error.code)) ?? [];
    if (portGiven && key === "port") {
      const explanation = { what: "the server does not run", why: error.message, todo: "choose another --port" };
      throw new CommandError(explanation, { code: error.code, cause: error });
    }
    problems.add(key === "mcp" ? [key] : ["server", key], error.message);
    throw problemsError(file, problems.all());
  }
}

/**
 * Serves a file in this process.
 * @throws CommandError with everything that is wrong with the file, or why its port cannot be had
 */
export async function startServing(file: ServeFile, options: ServingOptions): Promise<Serving> {
  await checkFile(file);
  const { workers, adminPort, portGiven } = options;
  const numbers = await openNumbers(file.settings, adminPort);
  const { stores, stateKeys } = await openKept(options);
  let server: TenonServer | undefined;
  const close = async (): Promise<void> => {
    await server?.close();
    await stores.close();
    await numbers?.close();
  };
  try {
    const around: Surroundings = {
      store: stores,
      ...(stateKeys && { stateKeys }),
      ...(workers > 1 && { replicas: workers }),
      sessions: workers === 1,
    };
    server = await buildServer(file, around);
    if (!server) throw problemsError(file.file, file.problems.all());
    const admin =
      adminPort === undefined
        ? undefined
        : await server.admin({ port: adminPort, ...(numbers && { metrics: numbers }) });
    const { url, port = 0 } = await listen(server, file, portGiven);
    return { url, port, admin: admin?.url, close };
  } catch (error) {
    await close();
    throw error;
  }
}
