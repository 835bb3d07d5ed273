import type { TokenVerifier } from "@tenon/server/auth";
import type { Lang } from "../texts/index.ts";

/** What the servers of the desk have in common. */
export interface ServeOptions {
  dataDirectory: string;
  lang: Lang;
  /** Address of an SMS gateway that takes `{ id, phone, content }` as JSON; left out, messages are only logged. */
  smsWebhook?: string | undefined;
  /** Takes the server's own log line by line; left out, it goes to stderr. */
  log?: (line: string) => void;
}

/** What one server of the desk is made with. */
export interface ServerOptions extends ServeOptions {
  /** Which tokens it takes. */
  auth: TokenVerifier;
}
