/** The two servers the desk works with. */
export type ServerName = "order" | "notification";
export const SERVER_NAMES: readonly ServerName[] = ["order", "notification"];

/** Where each listens unless told otherwise. */
export const PORTS: Readonly<Record<ServerName, number>> = { order: 8030, notification: 8031 };
