import { ConnectionError } from "@tenon/core";
import type { Listening, TenonServer } from "@tenon/server";
import type { ServerName } from "./names.ts";
import { createNotificationServer } from "./notification-server.ts";
import type { ServerOptions } from "./options.ts";
import { createOrderServer } from "./order-server.ts";

/** Makes one of the desk's servers. */
export function createDeskServer(name: ServerName, options: ServerOptions): Pick<TenonServer, "listen" | "close"> {
  return name === "order" ? createOrderServer(options) : createNotificationServer(options);
}

/**
 * Listens on the wanted port, or on a free one when that is taken and `fallback` allows it.
 * @throws ConnectionError `code: "port_in_use"`
 */
export async function listenOn(
  server: Pick<TenonServer, "listen">,
  port: number,
  fallback: boolean,
): Promise<Listening & { moved: boolean }> {
  try {
    return { ...(await server.listen({ port })), moved: false };
  } catch (error) {
    if (!fallback || !(error instanceof ConnectionError) || error.code !== "port_in_use") throw error;
    return { ...(await server.listen({ port: 0 })), moved: true };
  }
}
