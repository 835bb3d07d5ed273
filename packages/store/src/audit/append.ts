import type { JsonObject } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import { AuditError, type AuditKind, type AuditRecord, type NewAuditEntry } from "./audit.ts";
import type { AuditTurn, OpenPass } from "./audit-table.ts";
import { sealEntry } from "./chain.ts";

/** What became of one entry. */
export type Appended = { readonly record: AuditRecord } | { readonly error: unknown };

/** The outcome of a call of which nobody will ever say how it ended. */
function unknownOf({ seq, server, tool }: OpenPass, why: string): JsonObject {
  return { ...(server !== null && { server }), ...(tool !== null && { tool }), outcome: "unknown", why, intent: seq };
}

/** Why a call's outcome is unknown, for whoever reads it. */
export const WHY = {
  gone: "the process that made the call is gone",
  again: "another process sent the call again",
  doubtful: "the connection broke while the intent was written, and the call was refused",
} as const;

function secondOutcome(callId: string, pass: number): AuditError {
  return new AuditError(`Pass ${pass} of the call ${callId} has an outcome already, and this is another one`, {
    code: "second_outcome",
    data: { callId, pass },
  });
}

function noIntent(callId: string, pass: number): AuditError {
  return new AuditError(
    `Pass ${pass} of the call ${callId} never began: write its intent first, or leave pass out where that could not be done`,
    { code: "no_intent", data: { callId, pass } },
  );
}

/** Adds entries to the trail, in one turn of it, by the rules of `AuditStore.append`. */
export class Appending {
  readonly #turn: AuditTurn;
  readonly #writer: string;
  readonly #at: string;
  #head: { readonly seq: number; readonly hash: string };
  readonly records: AuditRecord[] = [];
  readonly opened: OpenPass[] = [];
  readonly closed: OpenPass[] = [];

  private constructor(turn: AuditTurn, writer: string, at: string, head: { seq: number; hash: string }) {
    this.#turn = turn;
    this.#writer = writer;
    this.#at = at;
    this.#head = head;
  }

  static async begin(turn: AuditTurn, writer: string): Promise<Appending> {
    const { head, now } = await turn.place();
    return new Appending(turn, writer, new Date(now).toISOString(), head);
  }

  #add(kind: AuditKind, callId: string, pass: number, data: JsonObject): AuditRecord {
    const record = sealEntry(this.#head, this.#at, { kind, callId, pass, data });
    this.#head = record;
    this.records.push(record);
    return record;
  }

  #close(open: OpenPass, data: JsonObject): AuditRecord {
    this.closed.push(open);
    return this.#add("outcome", open.callId, open.pass, data);
  }

  /** Gives up on calls. */
  giveUp(calls: readonly OpenPass[], why: string): AuditRecord[] {
    return calls.map((open) => this.#close(open, unknownOf(open, why)));
  }

  /** The entries of a batch, each by itself: one that is refused spoils no other. */
  async entries(batch: readonly NewAuditEntry[]): Promise<Appended[]> {
    const calls = [...new Set(batch.map(({ callId }) => callId))];
    const unnumbered = batch.filter((entry) => entry.kind === "intent" || entry.pass === undefined);
    const last = new Map(await this.#turn.lastPasses([...new Set(unnumbered.map(({ callId }) => callId))]));
    const givenUp = new Set(this.closed.map(({ seq }) => seq));
    const open = new Map<string, OpenPass[]>();
    for (const one of await this.#turn.open({ calls })) {
      if (!givenUp.has(one.seq)) open.set(one.callId, [...(open.get(one.callId) ?? []), one]);
    }
    const nextPass = (callId: string): number => {
      const pass = (last.get(callId) ?? 0) + 1;
      last.set(callId, pass);
      return pass;
    };

    const intent = (callId: string, data: JsonObject): AuditRecord => {
      const before = open.get(callId) ?? [];
      // this store may have several passes of one call open at once; another's pass is one that was cut off
      this.giveUp(
        before.filter(({ writer }) => writer !== this.#writer),
        WHY.again,
      );
      const record = this.#add("intent", callId, nextPass(callId), data);
      const [server, tool] = [data.server, data.tool];
      const mine: OpenPass = {
        callId,
        pass: record.pass,
        seq: record.seq,
        writer: this.#writer,
        server: typeof server === "string" ? server : null,
        tool: typeof tool === "string" ? tool : null,
      };
      this.opened.push(mine);
      open.set(callId, [...before.filter(({ writer }) => writer === this.#writer), mine]);
      return record;
    };

    const outcome = async (callId: string, pass: number | undefined, data: JsonObject): Promise<AuditRecord> => {
      if (pass === undefined) return this.#add("outcome", callId, nextPass(callId), data);
      const found = open.get(callId)?.find((one) => one.pass === pass);
      if (found) {
        open.set(
          callId,
          (open.get(callId) ?? []).filter((one) => one !== found),
        );
        return this.#close(found, data);
      }
      const own = this.records.filter((one) => one.callId === callId && one.pass === pass && one.kind !== "intent");
      const ends = [...(await this.#turn.ends(callId, pass)), ...own];
      const same = ends.find(({ data: { corrects: _, ...told } }) => digest(told) === digest(data));
      if (same) return same; // told again after a connection broke
      const [first, correction] = ends;
      if (!first) throw noIntent(callId, pass);
      if (first.data.outcome !== "unknown" || correction) throw secondOutcome(callId, pass);
      return this.#add("correction", callId, pass, { ...data, corrects: first.seq });
    };

    const results: Appended[] = [];
    for (const entry of batch) {
      try {
        const record =
          entry.kind === "intent"
            ? intent(entry.callId, entry.data)
            : await outcome(entry.callId, entry.pass, entry.data);
        results.push({ record });
      } catch (error) {
        if (!(error instanceof AuditError)) throw error; // the database: nothing of the batch is written
        results.push({ error });
      }
    }
    return results;
  }

  /** Writes down what came together. */
  async end(): Promise<void> {
    // opened and over in one batch: never open for others
    const over = new Set(this.closed.map(({ seq }) => seq));
    const mine = new Set(this.opened.map(({ seq }) => seq));
    await this.#turn.add(
      this.records,
      this.opened.filter(({ seq }) => !over.has(seq)),
      this.closed.filter(({ seq }) => !mine.has(seq)),
    );
  }
}
