import { ConfigError, isRecord } from "@tenon/core";
import { refuseOption } from "@tenon/core/internal";
import type { Listening, ListenOptions } from "../http/listen.ts";
import type { RegisteredServer, Registrar, Registration } from "./types.ts";

/** What of a server is known without looking where it listens. */
type Known = Pick<RegisteredServer, "name" | "version" | "capabilities" | "hasContract" | "log">;

/** The registrars of `listen`'s options. @throws ConfigError `invalid_option`, `listen_options` */
export function registrarsOf({ register, unixSocket }: ListenOptions): readonly Registrar[] {
  const all: readonly unknown[] = [register ?? []].flat();
  for (const one of all) {
    if (isRecord(one) && typeof one.register === "function") continue;
    refuseOption(
      "listen(options).register must be made by a function of @tenon/server/register, such as consul({ url })",
    );
  }
  if (all.length > 0 && unixSocket !== undefined) {
    throw new ConfigError("listen(options) has register together with unixSocket, which no other machine can reach", {
      code: "listen_options",
    });
  }
  return all as readonly Registrar[]; // each was looked at
}

/** Registers a server that listens. @throws ConfigError for one that cannot be registered; none is left registered then */
export async function registerListening(
  registrars: readonly Registrar[],
  { url, port = 0 }: Pick<Listening, "url" | "port">,
  known: Known,
): Promise<readonly Registration[]> {
  const { protocol, hostname, pathname } = new URL(url);
  const place = {
    scheme: protocol === "https:" ? ("https" as const) : ("http" as const),
    host: hostname.replace(/^\[|\]$/g, ""),
    port,
    path: pathname,
  };
  const made: Registration[] = [];
  try {
    for (const registrar of registrars) made.push(registrar.register({ ...known, ...place }));
  } catch (error) {
    await Promise.all(made.map((one) => one.close()));
    throw error;
  }
  return made;
}
