import { ConnectionError } from "@tenon/core";
import type { Listening, ListenOptions, TenonServer } from "@tenon/server";
import { openDatabase } from "../database/database.ts";
import { openStores } from "../database/stores.ts";
import type { ServerName } from "./names.ts";
import { createNotificationServer } from "./notification-server.ts";
import type { ServeOptions } from "./options.ts";
import { createOrderServer } from "./order-server.ts";
import { type OtherIssuer, trustOf } from "./trust.ts";

/** A server of the desk together with what it keeps. */
export type DeskServer = Pick<TenonServer, "listen" | "admin" | "work" | "close">;

/** Makes one of the desk's servers; closing it closes what was opened for it. */
export async function openDeskServer(
  name: ServerName,
  { issuer, jwks, audience, ...options }: ServeOptions & OtherIssuer,
): Promise<DeskServer> {
  const auth = await trustOf(name, options.place.directory, { issuer, jwks, audience });
  const database = await openDatabase(options.place);
  const stores = await openStores(options.place, "servers.sqlite");
  const create = name === "order" ? createOrderServer : createNotificationServer;
  const server = create({ ...options, auth, database, stores });
  return {
    listen: (where) => server.listen(where),
    admin: (where) => server.admin(where),
    work: (how) => server.work(how),
    async close() {
      await server.close();
      await Promise.all([stores.close(), database.close()]);
    },
  };
}

/**
 * Listens on the wanted port, or on a free one when that is taken and `fallback` allows it.
 * @throws ConnectionError `code: "port_in_use"`
 */
export async function listenOn(
  server: Pick<DeskServer, "listen">,
  where: Pick<ListenOptions, "port" | "host" | "tls">,
  fallback: boolean,
): Promise<Listening & { moved: boolean }> {
  try {
    return { ...(await server.listen(where)), moved: false };
  } catch (error) {
    if (!fallback || !(error instanceof ConnectionError) || error.code !== "port_in_use") throw error;
    return { ...(await server.listen({ ...where, port: 0 })), moved: true };
  }
}
