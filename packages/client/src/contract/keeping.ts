import { ContractError, type TenonError } from "@tenon/core";
import type { Connection, ConnectionHooks } from "../connection/connection.ts";
import { renewContract } from "./negotiation.ts";

/**
 * Milliseconds in which a contract that was not agreed on is not tried again, so that calls that come together share one answer: of a
 * server that answered, and of one that was late, which may be better in a moment.
 */
const KEEP_MS = { refused: 1_000, late: 200 };
/** Milliseconds until a server that could not be asked for its new declaration is asked again. */
const AGAIN_MS = 5_000;

/** A contract that was not agreed on, and until when that is the answer to whoever asks. */
export interface Refused {
  readonly error: TenonError;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** What is kept of a failed attempt to open a connection: only what a contract has to do with. */
export function keepRefusal(error: TenonError): Refused | undefined {
  if (!(error instanceof ContractError)) return undefined;
  return { error, until: Date.now() + (error.retryable ? KEEP_MS.late : KEEP_MS.refused) };
}

/** Errors by which a place of a server cannot be used at all: its contract is not what this client wants. */
const CLOSED = new Set(["negotiation", "signature", "schema_conflict", "malformed_contract"]);

/** Whether a replica cannot be used for its contract's sake; another one may have the right one. */
export function isOutOfContract(error: TenonError): boolean {
  return error instanceof ContractError && CLOSED.has(error.code);
}

/** Connections whose contract is being renewed, or was not long ago, and when it may be tried again. */
const renewing = new WeakMap<Connection, number>();

/**
 * Has the contract of a connection renewed when its time is over. Calls go on meanwhile: the server accepts both of its keys.
 * @returns undefined where nothing is to be done; `replace` where only a new connection can ask again; else why the connection is of no
 * more use, or undefined
 */
export function renewal(
  connection: Connection,
  hooks: ConnectionHooks,
): "replace" | Promise<Refused | undefined> | undefined {
  const { contract, config, era, server } = connection;
  const now = Date.now();
  if (!contract || now < contract.renewAt) return undefined;
  // the handshake of the older revision is over once and for all; a process that was started for this client stays who it is
  if (era === "legacy") return "url" in config ? "replace" : undefined;
  if (now >= contract.endsAt) return "replace";
  if (now < (renewing.get(connection) ?? 0)) return undefined;
  renewing.set(connection, Number.POSITIVE_INFINITY);
  return renewContract(server, connection, hooks).then(
    () => {
      renewing.delete(connection);
      return undefined;
    },
    (error: unknown) => {
      renewing.set(connection, Date.now() + AGAIN_MS);
      if (!(error instanceof ContractError)) return undefined;
      // who could not be asked may be asked later, as long as the contract can still be in force
      return error.retryable && Date.now() < contract.endsAt ? undefined : keepRefusal(error);
    },
  );
}
