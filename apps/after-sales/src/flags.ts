import type { Lang } from "./texts/index.ts";

/** What every command is told. */
export interface CommonFlags {
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
}

/** What `serve` is told. */
export interface ServeFlags extends CommonFlags {
  port?: number;
  anyPort?: boolean;
}
