import type { TokenVerifier } from "@tenon/server/auth";
import type { Stores } from "@tenon/store";
import type { Place } from "../database/place.ts";
import type { DeskDatabase } from "../database/tables.ts";
import type { Lang } from "../texts/index.ts";

/** What the servers of the desk have in common. */
export interface ServeOptions {
  place: Place;
  lang: Lang;
  /** Address of an SMS gateway that takes `{ id, phone, content }` as JSON; left out, messages are only logged. */
  smsWebhook?: string | undefined;
  /** Takes the server's own log line by line; left out, it goes to stderr. */
  log?: (line: string) => void;
  /** Names under which clients reach it, where it listens for other machines. */
  allowedHosts?: readonly string[] | undefined;
  /** Tasks the process runs at once; 0: worker processes run them. */
  concurrency?: number | undefined;
  /** Only runs tasks; default false. A task's questions lie in the database unsealed, so such a process needs nobody's state keys. */
  onlyTasks?: boolean | undefined;
}

/** What one server of the desk is made with. */
export interface ServerOptions extends ServeOptions {
  /** Which tokens it takes. */
  auth: TokenVerifier;
  /** Orders, refunds and messages; whoever opened it closes it. */
  database: DeskDatabase;
  /** What the server itself remembers; whoever opened them closes them. */
  stores: Stores;
}
