import { setTimeout as sleep } from "node:timers/promises";
import { TenonError } from "@tenon/core";
import { toJson } from "@tenon/core/internal";
import type { AuditedCall, AuditRecord, AuditSinkPair, NewAuditEntry } from "./audit.ts";

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5_000;
/** Outcomes that wait for the database at once; more are told to their caller. */
const MAX_WAITING = 1_000;

/** What is kept of an entry: all of it but what the record itself says. */
function dataOf(entry: AuditedCall) {
  const { kind: _k, callId: _c, pass: _p, ...data } = toJson(entry) as Record<string, never>; // an entry is an object
  return data;
}

/**
 * Has the entries of a client written down. Its passes are counted anew in each process: the store's go on from what is in the
 * trail.
 */
export function sinkInto(append: (entry: NewAuditEntry) => Promise<AuditRecord>, closed: AbortSignal): AuditSinkPair {
  /** The pass in the trail of each open pass of this process; undefined where its intent could not be written. */
  const passes = new Map<string, Promise<number | undefined>>();
  const nameOf = ({ callId, pass }: AuditedCall): string => `${pass}:${callId}`;
  let waiting = 0;

  /** The call has run: its outcome is not given up because the database is away for a while. */
  async function appendAtLast(entry: NewAuditEntry): Promise<void> {
    let pauseMs = FIRST_WAIT_MS;
    for (;;) {
      try {
        await append(entry);
        return;
      } catch (error) {
        // about the entry, or the store is closed
        const final = error instanceof TenonError && !error.retryable;
        if (final || closed.aborted || waiting >= MAX_WAITING) throw error;
        waiting += 1;
        await sleep(pauseMs, undefined, { signal: closed })
          .catch(() => undefined)
          .finally(() => {
            waiting -= 1;
          });
        pauseMs = Math.min(pauseMs * 2, LONGEST_WAIT_MS);
      }
    }
  }

  return {
    async intent(entry) {
      const name = nameOf(entry);
      const written = append({ kind: "intent", callId: entry.callId, data: dataOf(entry) });
      passes.set(
        name,
        written.then(
          ({ pass }) => pass,
          () => {
            passes.delete(name);
            return undefined;
          },
        ),
      );
      await written;
    },
    async outcome(entry) {
      const name = nameOf(entry);
      const pass = await passes.get(name);
      passes.delete(name);
      await appendAtLast({ kind: "outcome", callId: entry.callId, pass, data: dataOf(entry) });
    },
  };
}
