import type { Lang } from "./texts/index.ts";

/** What every command is told. */
interface CommonFlags {
  /** Absolute path; it can be written. */
  data: string;
  lang: Lang;
  smsWebhook?: string;
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
  /** Whose tokens the server takes instead of the desk's own. */
  issuer?: string;
  jwks?: string;
  audience?: string;
}
