import { ConfigError, ConnectionError, type TenonError } from "@tenon/core";
import type { Replica } from "./replica.ts";

/** A replica that a request was sent to, or was kept from. */
export interface Tried {
  readonly replica: string;
  readonly code: string;
  readonly reason: string;
}

/** Replicas that a message names; `data` names all. */
const MAX_NAMED = 5;

function inWords(tried: readonly Tried[]): string {
  const shown = tried.slice(0, MAX_NAMED).map(({ replica, reason }) => `${replica}: ${reason}`);
  const more = tried.length - shown.length;
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

/** An error of one replica, for the list of those that were tried. */
export function triedOf(replica: Replica, { code, message }: TenonError): Tried {
  return { replica: replica.id, code, reason: message.length > 300 ? `${message.slice(0, 300)}…` : message };
}

/** Nothing answered: each replica was tried, or could not be. */
export function noReplica(server: string, what: string, tried: readonly Tried[], cause: unknown, ran: boolean) {
  return new ConnectionError(
    `no replica of server "${server}" answered ${what} (${inWords(tried) || "there is none"}). ` +
      `${ran ? "It may have run more than once, which does no harm" : "It did not run"}; client.servers() says how each replica is`,
    {
      code: "no_replica",
      server,
      retryable: true,
      maybeExecuted: ran,
      data: { replicas: tried },
      ...(cause !== undefined && { cause }),
    },
  );
}

/** Every replica that could answer is left alone for now. */
export function allOpen(server: string, what: string, replicas: readonly Replica[]): ConnectionError {
  const now = Date.now();
  const next = Math.min(...replicas.flatMap(({ breaker }) => breaker?.retryAt ?? []));
  // one whose time has come and that admits nothing is being tried: nobody knows when that call ends
  const wait = next > now && Number.isFinite(next) ? next - now : undefined;
  return new ConnectionError(
    `${what} was not sent to server "${server}": ${replicas.length === 1 ? "it" : "each of its replicas"} failed too often and is left ` +
      `alone; ${wait === undefined ? "a call tries it just now" : `the next try is possible in ${Math.ceil(wait / 1_000)} s`}. Look at what is wrong there, or change breaker of the server`,
    {
      code: "breaker_open",
      server,
      retryable: true,
      maybeExecuted: false,
      data: {
        replicas: replicas.map(({ id }) => id),
        // how long a layer that repeats waits; else it has waits of its own
        ...(wait !== undefined && { retryAt: new Date(next).toISOString(), retryAfterMs: wait }),
      },
    },
  );
}

/** A call's own headers must not go where only a registry says. */
export function headersNeedOrigins(server: string): ConfigError {
  return new ConfigError(
    `a call of server "${server}" brings headers, but where they would go only the registry says. Give the server \`origins\`, such as ` +
      '["https://kb.example"]: its replicas must be there. Nothing was sent',
    { code: "origins_needed", server, maybeExecuted: false },
  );
}
