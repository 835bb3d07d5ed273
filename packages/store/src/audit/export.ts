import type { JsonObject } from "@tenon/core";
import type { AuditExportOptions, AuditFilter, AuditRecord } from "./audit.ts";

const PAGE = 500;

/** What a person looks for; `data` has everything. */
const COLUMNS = [
  "seq",
  "at",
  "kind",
  "callId",
  "pass",
  "server",
  "tool",
  "outcome",
  "ms",
  "actor",
  "threadId",
  "traceId",
  "approval",
  "data",
  "previous",
  "hash",
] as const;

/** What a spreadsheet takes for a formula when a cell begins with it, in the wide form of Chinese keyboards as well. */
const FORMULA = /^[\s\p{Cc}]*[=+\-@＝＋－＠]|^[\t\r\n]/u;

/** One cell: text that a spreadsheet shows and does not compute. */
function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvLine({ data, ...record }: AuditRecord): string {
  const known: JsonObject = data;
  const values: Readonly<Record<string, unknown>> = { ...known, ...record, data };
  return `${COLUMNS.map((name) => cell(values[name])).join(",")}\r\n`;
}

/** The trail as lines of text, page by page. */
export async function* exportLines(
  read: (query: AuditFilter & { after: number; limit: number }) => Promise<readonly AuditRecord[]>,
  { format = "jsonl", ...filter }: AuditExportOptions,
): AsyncGenerator<string> {
  if (format === "csv") yield `${COLUMNS.join(",")}\r\n`;
  for (let after = 0; ; ) {
    const page = await read({ ...filter, after, limit: PAGE });
    for (const record of page) yield format === "csv" ? csvLine(record) : `${JSON.stringify(record)}\n`;
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.seq;
  }
}
