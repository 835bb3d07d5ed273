import { type Command, InvalidArgumentError, Option } from "commander";
import { wholeNumber } from "../options.ts";
import { addPlace } from "../place.ts";

/** `2026-01-31`, `2026-01-31T08:00:00Z`, or how long ago: `90s`, `15m`, `6h`, `7d`. Milliseconds since 1970. */
export function moment(text: string): number {
  const [, count, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  const ago = units[unit];
  const at =
    count !== undefined && ago !== undefined
      ? Date.now() - Number(count) * ago
      : /^\d{4}-\d\d-\d\d/.test(text)
        ? Date.parse(text)
        : Number.NaN;
  if (at >= 0) return at;
  throw new InvalidArgumentError(
    "Expected a date such as 2026-01-31 or 2026-01-31T08:00:00Z, or how long ago: 90s, 15m, 6h, 7d.",
  );
}

/** `12:hash`, as `verify` prints it. */
function anchor(text: string): { seq: number; hash: string } {
  const [, seq, hash] = /^(\d+):([\w-]{43})$/.exec(text) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash };
  throw new InvalidArgumentError("Expected number:hash, as an earlier `tenon audit verify` printed it.");
}

const filters = (command: Command): Command =>
  command
    .option("--call <id>", "only entries of this call")
    .option("--thread <id>", "only calls made in this conversation")
    .option("--server <name>", "only calls to this server")
    .option("--tool <name>", "only calls to this tool, by its name on the wire");

const work = () => import("../audit/audit.ts");

/** `tenon audit verify`, `tenon audit tail`, `tenon audit export`. */
export function addAudit(program: Command): void {
  const audit = program.command("audit").description("the trail of what was called, by whom, and what came of it");
  addPlace(audit.command("verify").description("check that nobody changed, removed, added, moved or cut off entries"))
    .option("--anchor <number:hash>", "an entry that must be in the trail: what verify printed earlier", anchor)
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      `
Examples:
  tenon audit verify --data .tenon
  tenon audit verify --database postgres://tenon@db:5432/tenon --anchor 41822:4bWm…

Exit code 0: unbroken; 1: broken, with the first place. Keep the line that it prints somewhere else: whoever may write to the
database can write a whole new trail, and only an anchor tells that one from this.`,
    )
    .action(async (flags) => (await work()).verify(flags));
  filters(addPlace(audit.command("tail").description("print the last entries, and those that come")))
    .option("-n, --lines <count>", "how many of the last entries", wholeNumber(0, 1_000), 10)
    .option("-f, --follow", "go on with what is written from now on, until Ctrl-C")
    .option("--json", "entries as they are, a line of JSON each")
    .addHelpText(
      "after",
      `
Examples:
  tenon audit tail -n 20
  tenon audit tail -f --tool process_refund --json | jq .data.args`,
    )
    .action(async (flags) => (await work()).tail(flags));
  filters(addPlace(audit.command("export").description("print the whole trail, or a part of it")))
    .addOption(
      new Option("--format <format>", "jsonl: entries as they are; csv: a table, safe to open in a spreadsheet")
        .choices(["jsonl", "csv"])
        .default("jsonl"),
    )
    .option("--since <time>", "written then or later: a date, or how long ago (90s, 15m, 6h, 7d)", moment)
    .option("--until <time>", "written before then", moment)
    .option("--json", "the same as --format jsonl")
    .addHelpText(
      "after",
      `
Examples:
  tenon audit export > audit.jsonl
  tenon audit export --since 7d --tool process_refund --format csv > refunds.csv`,
    )
    .action(async (flags) => (await work()).exportTrail(flags));
}
