import { isProcessGone } from "@tenon/agent";
import { audit } from "@tenon/client/interceptors";
import type { Place } from "../database/place.ts";
import { openStores } from "../database/stores.ts";
import type { DeskContext } from "./interceptors.ts";

/** What was called, for whom, and what came of it: nobody can change it unseen (`tenon audit verify`). */
export interface AuditTrail {
  /** Writes an entry before a call leaves and one when it is over; a call whose entry cannot be written is not sent. */
  readonly interceptor: ReturnType<typeof audit>;
  close(): Promise<void>;
}

/** Phone numbers are in the outbox, and need not stand for ever in what is never deleted. */
const REDACT = { patterns: ["bearer", "jwt", "phone"] } as const;

/**
 * Opens the trail of a place: `audit.sqlite`, or a table in Postgres. Calls that a crashed desk left open end as `unknown` first;
 * one that is resumed gets a pass of its own.
 */
export async function openAudit(place: Place): Promise<AuditTrail> {
  const stores = await openStores(place, "audit.sqlite");
  try {
    await stores.audit.sweep({ isGone: isProcessGone });
  } catch (error) {
    await stores.close();
    throw error;
  }
  return {
    interceptor: audit({
      sink: stores.audit.sink(),
      redact: REDACT,
      actor: ({ runtime }) => runtime.context as DeskContext | undefined, // the agent's contextSchema
    }),
    close: () => stores.close(),
  };
}
