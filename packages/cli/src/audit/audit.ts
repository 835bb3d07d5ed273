import { once } from "node:events";
import { isRecord } from "@tenon/core";
import type { AuditRecord, AuditStore } from "@tenon/store";
import { attempt, CommandError } from "../failure.ts";
import { type Kept, openPlace, type PlaceFlags } from "../place.ts";
import { oneLine } from "../text.ts";

const TRAIL: Kept = { files: ["audit.sqlite", "tenon.sqlite"], table: "tenon_audit", name: "audit trail" };

interface FilterFlags extends PlaceFlags {
  readonly call?: string;
  readonly thread?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly json?: boolean;
}

const filterOf = ({ call, thread, server, tool }: FilterFlags) => ({ callId: call, thread, server, tool });

/** Opens the trail for as long as the work lasts. */
async function withTrail(flags: PlaceFlags, what: string, work: (audit: AuditStore) => Promise<void>): Promise<void> {
  await attempt(what, async () => {
    await using stores = await openPlace(flags, TRAIL, what);
    await work(stores.audit);
  });
}

/** Writes as fast as the reader reads. A reader that is gone (`| head`) ends the work without an error. */
function createOutput() {
  const gone = new AbortController();
  const onError = (error: unknown): void => {
    gone.abort(error);
  };
  process.stdout.on("error", onError);
  return {
    gone: gone.signal,
    async write(text: string): Promise<void> {
      if (gone.signal.aborted || process.stdout.write(text)) return;
      await once(process.stdout, "drain", { signal: gone.signal }).catch(() => undefined);
    },
    [Symbol.dispose]: () => {
      // what was written last may fail later
      if (!gone.signal.aborted) process.stdout.on("error", () => undefined);
      process.stdout.off("error", onError);
    },
  };
}

/** `tenon audit verify`. */
export async function verify(flags: PlaceFlags & { anchor?: { seq: number; hash: string }; json?: boolean }) {
  await withTrail(flags, "the audit trail was not checked", async (audit) => {
    const verdict = await audit.verify({ anchor: flags.anchor });
    const open = verdict.intact ? await audit.unfinished() : [];
    const anchor = verdict.intact && verdict.head && `${verdict.head.seq}:${verdict.head.hash}`;
    const shown = { ...verdict, ...(verdict.intact && { unfinished: open.length }), ...(anchor && { anchor }) };
    if (flags.json) process.stdout.write(`${JSON.stringify(shown)}\n`);
    if (!verdict.intact) {
      throw new CommandError(
        {
          what: `the audit trail is broken at entry ${verdict.seq} (${verdict.problem})`,
          why: verdict.message,
          todo:
            `the ${verdict.entries} entries before it are as they were written; keep the database as it is, and compare it ` +
            "with a backup or an earlier export",
        },
        { code: "broken" },
      );
    }
    if (flags.json) return;
    if (verdict.entries === 0) {
      process.stdout.write("empty: nothing was ever written, or all of it is gone\n");
      return;
    }
    const { entries, intents, unknown, corrections } = verdict;
    const about = [
      `${intents} calls`,
      ...(unknown > 0 ? [`${unknown} with an unknown outcome`] : []),
      ...(corrections > 0 ? [`${corrections} corrected`] : []),
      ...(open.length > 0 ? [`${open.length} without an outcome yet`] : []),
    ];
    process.stdout.write(`unbroken: ${entries} entries (${about.join(", ")})\n`);
    if (anchor) process.stdout.write(`anchor: ${anchor}\n`);
  });
}

const word = (value: unknown): string => (typeof value === "string" ? value : "");

/** Who asked, as short as it can be told. */
function actorOf(actor: unknown): string {
  if (!isRecord(actor)) return word(actor);
  return [actor.userName, actor.name, actor.userId, actor.sub].map(word).find((name) => name !== "") ?? "";
}

/** What a person decided about a call, and who. */
function decisionOf(approval: unknown): string {
  if (!isRecord(approval)) return "";
  const by = actorOf(approval.decidedBy);
  return `${word(approval.decision)}${by === "" ? "" : ` by ${by}`}`;
}

/** An entry on one line, for a person: what others wrote cannot move the cursor. */
export function shown({ seq, at, kind, callId, pass, data }: AuditRecord): string {
  const what = `${word(data.server)}/${word(data.tool)}`;
  const { outcome, error, ms } = data;
  const told =
    kind === "intent"
      ? [actorOf(data.actor), data.args === undefined ? "" : JSON.stringify(data.args)]
      : [
          word(outcome),
          typeof ms === "number" ? `${ms} ms` : "",
          isRecord(error) ? `${word(error.code)}: ${word(error.message)}` : word(data.why),
        ];
  const trace = typeof data.traceId === "string" ? `trace ${data.traceId}` : "";
  const line = [seq, at, kind, what, `${callId}#${pass}`, ...told, decisionOf(data.approval), trace]
    .filter((part) => part !== "")
    .join("  ");
  return `${oneLine(line)}\n`;
}

/** `tenon audit tail`. */
export async function tail(flags: FilterFlags & { lines: number; follow?: boolean }): Promise<void> {
  await withTrail(flags, "the audit trail is not shown", async (audit) => {
    using output = createOutput();
    const stop = new AbortController();
    const end = (): void => stop.abort();
    process.once("SIGINT", end).once("SIGTERM", end);
    try {
      const filter = filterOf(flags);
      const write = (record: AuditRecord) => output.write(flags.json ? `${JSON.stringify(record)}\n` : shown(record));
      // before the last ones are read: nothing falls in between
      const head = (await audit.head())?.seq ?? 0;
      const last = flags.lines === 0 ? [] : await audit.read({ ...filter, limit: flags.lines, newest: true });
      for (const record of last) await write(record);
      if (!flags.follow) return;
      const signal = AbortSignal.any([stop.signal, output.gone]);
      const after = Math.max(head, last.at(-1)?.seq ?? 0);
      for await (const record of audit.tail({ ...filter, after, signal })) await write(record);
    } finally {
      process.off("SIGINT", end).off("SIGTERM", end);
    }
  });
}

/** `tenon audit export`. */
export async function exportTrail(
  flags: FilterFlags & { format: "jsonl" | "csv"; since?: number; until?: number },
): Promise<void> {
  await withTrail(flags, "the audit trail was not written out", async (audit) => {
    using output = createOutput();
    const { since, until } = flags;
    const format = flags.json ? "jsonl" : flags.format;
    for await (const line of audit.export({ ...filterOf(flags), format, since, until })) {
      if (output.gone.aborted) return;
      await output.write(line);
    }
  });
}
