import { existsSync } from "node:fs";
import { join } from "node:path";
import { cleanText, codeOf, isLoopback } from "@tenon/core";
import { loadSigningKey, openSigningKey, SIGNING_KEY_FILE, type SigningKey } from "@tenon/server/development";
import { dataDirectory, makeDataDirectory } from "../data-directory.ts";
import { CommandError, usageError } from "../failure.ts";
import { parseClients } from "./clients.ts";
import { listenAuthServer } from "./listen.ts";

/** The options of `tenon auth-server`. */
export interface AuthServerFlags {
  readonly port: number;
  readonly host: string;
  readonly issuer?: string;
  readonly resource: readonly string[];
  readonly scope: readonly string[];
  readonly user?: readonly string[];
  readonly client?: readonly string[];
  readonly registration: boolean;
  readonly expires: number;
  readonly key?: string;
  readonly autoApprove?: string;
  readonly json?: boolean;
}

/** The key of the data directory, which `tenon token` signs with too; made when there is none. */
async function keyOf(given: string | undefined): Promise<{ key: SigningKey; path: string; made: boolean }> {
  const path = given ?? join(dataDirectory(), SIGNING_KEY_FILE);
  if (given !== undefined || existsSync(path)) return { key: await loadSigningKey(path), path, made: false };
  makeDataDirectory(dataDirectory());
  return { key: await openSigningKey(path), path, made: true };
}

/** Why an address cannot be listened at, by the operating system's code. */
const NOT_LISTENING: Readonly<Record<string, string>> = {
  EADDRINUSE: "is in use",
  EACCES: "is not for this user",
  EADDRNOTAVAIL: "is not of this computer",
};

const say = (text: string): void => {
  process.stderr.write(`${cleanText(text)}\n`);
};

/** Resolves at the first Ctrl-C or SIGTERM; a second one ends the process at once. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(130));
        resolve();
      });
    }
  });
}

function refuseContradictions({ autoApprove, user = [], scope, resource }: AuthServerFlags): void {
  if (autoApprove !== undefined && user.length > 0 && !user.includes(autoApprove)) {
    throw usageError(`--auto-approve ${autoApprove} is none of the users`, `add --user ${autoApprove}`);
  }
  const bad = scope.find((one) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(one));
  if (bad !== undefined) throw usageError(`${JSON.stringify(bad)} is no scope`, "use printable characters, no quotes");
  if (scope.length === 0 || resource.length === 0) throw usageError("there is no scope or no resource", "name one");
}

/** `tenon auth-server`: runs until it is stopped. */
export async function runAuthServer(flags: AuthServerFlags): Promise<void> {
  refuseContradictions(flags);
  const { host, port, issuer, autoApprove, user: users = [] } = flags;
  const clients = parseClients(flags.client ?? []);
  const { key, path, made } = await keyOf(flags.key);
  const running = await listenAuthServer({
    host,
    port,
    key,
    users,
    clients,
    resources: flags.resource,
    scopes: flags.scope,
    registration: flags.registration,
    tokenSeconds: flags.expires,
    ...(issuer !== undefined && { issuer }),
    ...(autoApprove !== undefined && { autoApprove }),
    log: (line) => say(`tenon auth-server: ${line.replaceAll("\n", " ")}`),
  }).catch((cause) => {
    const why = NOT_LISTENING[codeOf(cause) ?? ""];
    if (why === undefined) throw cause;
    throw new CommandError(
      {
        what: "the authorization server does not run",
        why: `${host}:${port} ${why}`,
        todo: "choose another: --port, --host",
      },
      { code: "port", cause },
    );
  });
  const stopped = untilStopped();
  const jwks = `${running.issuer}/jwks`;
  const metadata = `${running.issuer}/.well-known/oauth-authorization-server`;
  say(`tenon auth-server (development only: no passwords, everything but the key in memory)
  issuer     ${running.issuer}
  metadata   ${metadata}
  keys       ${jwks}
  resources  ${flags.resource.join("  ")}
  scopes     ${flags.scope.join(" ")}
  users      ${users.length > 0 ? users.join(" ") : "any name"}
  key        ${path}${made ? " (made now)" : ""}
  server     jwt({ issuer: "${running.issuer}", audience: "${flags.resource[0]}", jwksUrl: "${jwks}" })
  Ctrl-C ends it, and with it sign-ins, registrations and refresh tokens.`);
  if (!isLoopback(host))
    say(`WARNING: ${host} can be reached by other computers, and anyone there can be anyone here.`);
  if (autoApprove !== undefined) {
    say(`WARNING: everything is approved as ${autoApprove} without asking; any web page you visit can get a token.`);
  }
  if (flags.json) {
    const { resource: resources, scope: scopes } = flags;
    process.stdout.write(`${JSON.stringify({ issuer: running.issuer, metadata, jwks, resources, scopes })}\n`);
  }
  await stopped;
  await running.close();
}
