import type { Place } from "./database/place.ts";
import type { Lang } from "./texts/index.ts";

/** What every command is told. */
interface CommonFlags {
  /** Absolute path; it can be written. */
  data: string;
  /** Address of Postgres; left out, everything is in files of `data`. */
  database?: string;
  schema?: string;
  lang: Lang;
  smsWebhook?: string;
  /** Address of a collector for traces. */
  otlp?: string;
}

/** What the commands with an agent, or with its servers, are told. */
export interface DeskFlags extends CommonFlags {
  model: string;
  baseUrl?: string;
  thread: string;
  all?: boolean;
  orderPort?: number;
  notificationPort?: number;
  orderUrl?: string;
  notificationUrl?: string;
  /** Files with a token for a server. */
  orderTokenFile?: string;
  notificationTokenFile?: string;
}

/** What `serve` is told. */
export interface ServeFlags extends CommonFlags {
  port?: number;
  anyPort?: boolean;
  host?: string;
  allowedHost?: readonly string[];
  tlsCert?: string;
  tlsKey?: string;
  adminPort?: number;
  adminHost?: string;
  /** False: worker processes run the tasks. */
  worker?: boolean;
  /** Whose tokens the server takes instead of the desk's own. */
  issuer?: string;
  jwks?: string;
  audience?: string;
}

/** What `worker` is told. */
export interface WorkerFlags extends CommonFlags, Pick<ServeFlags, "adminPort" | "adminHost"> {
  concurrency?: number;
}

/** Where the commands keep things. */
export const placeOf = ({ data, database, schema }: CommonFlags): Place => ({
  directory: data,
  url: database || undefined,
  schema,
});
