import { randomUUID } from "node:crypto";
import type { ProtocolError } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { emptyJournal, type Journal, packJournal, unpackJournal } from "../handler/journal.ts";
import type { Keeping } from "./rounds.ts";
import { refuse, tooLate } from "./seal.ts";

/**
 * Reads a state that a client brings back.
 * @returns `late`: why no answer is taken any more; one that came in time still has its outcome
 * @throws ProtocolError -32602 with `data.reason` `expired`, `foreign` or `tampered`
 */
export async function openState(
  keeping: Keeping,
  requestState: string,
  binding: unknown,
): Promise<{ id: string; journal: Journal; late: ProtocolError | undefined }> {
  const { id, state, expired } = await keeping.seal.open(requestState, binding);
  const late = expired ? tooLate() : undefined;
  let packed = isRecord(state) ? state.journal : undefined;
  if (isRecord(state) && typeof state.blob === "string") {
    const text = await keeping.store.getBlob(state.blob);
    if (text === undefined) {
      const gone = refuse(
        "expired",
        "What this question has to remember is gone; send the call again without requestState",
      );
      // without its questions nothing counts as an answer
      return { id, journal: emptyJournal(id), late: late ?? gone };
    }
    packed = JSON.parse(text);
  }
  const journal = unpackJournal(packed);
  // sealed by us, yet not a journal: made by another version of the library
  if (!journal) throw refuse("expired", "The requestState is of another version; send the call again without it");
  return { id, journal, late };
}

/**
 * Makes the state that goes out with a round's questions; a large journal goes to the store and leaves a handle in it.
 * @param id the same for states that ask the same round again
 */
export async function closeState(keeping: Keeping, journal: Journal, binding: unknown, id: string): Promise<string> {
  const packed = packJournal(journal);
  const text = JSON.stringify(packed);
  if (Buffer.byteLength(text) <= keeping.spillBytes) return keeping.seal.close({ journal: packed }, binding, id);
  const blob = `journal:${randomUUID()}`;
  await keeping.store.putBlob(blob, text, keeping.questionTtlMs);
  return keeping.seal.close({ blob }, binding, id);
}
