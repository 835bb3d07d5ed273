import { CODES, LAYER_EXIT } from "./codes.ts";
import type { Report, TargetReport } from "./doctor.ts";
import type { Finding } from "./visit.ts";

const COLUMNS = 80;

/** Text in lines of a terminal's width: the first after `head`, the others under it. */
function wrapped(head: string, text: string): string[] {
  const lines: string[] = [];
  let line = head;
  let isEmpty = true;
  for (const word of text.split(" ")) {
    if (!isEmpty && line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = " ".repeat(head.length);
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}

const findingLines = ({ code, severity, cause, evidence, fix }: Finding): string[] => [
  ...wrapped(`  ${severity.padEnd(8)}`, `${cause} [${code}]`),
  ...wrapped("    seen: ", evidence),
  ...wrapped("    do:   ", fix),
];

function summary({ era, facts }: TargetReport): string {
  const { revision, server, tools, contract, proxy, latency } = facts;
  const times = Object.entries(latency).map(([what, ms]) => `${what} ${ms} ms`);
  return [
    ...(server === undefined ? [] : [server.trim()]),
    ...(era === null ? [] : [revision === undefined ? era : `${era} ${revision}`]),
    ...(tools === undefined ? [] : [`${tools} ${tools === 1 ? "tool" : "tools"}`]),
    ...(contract === undefined ? [] : [`contract ${contract.version}, signature ${contract.signature}`]),
    ...(proxy === undefined ? [] : [`through ${proxy}`]),
    ...times,
  ].join(", ");
}

/** A report for people: a paragraph for each server, three lines for each finding. */
export function reportText({ targets }: Report): string {
  const parts = targets.map((target) => {
    const told = summary(target);
    return [
      ...wrapped(target.ok ? "ok      " : "broken  ", target.target),
      ...(told === "" ? [] : wrapped("  ", told)),
      ...target.findings.flatMap(findingLines),
    ].join("\n");
  });
  return `${parts.join("\n\n")}\n`;
}

/** What the program ends with: that of the first error's layer, in the order of the servers. */
export function exitCodeOf({ targets }: Report): number {
  for (const { findings } of targets) {
    const error = findings.find(({ severity }) => severity === "error");
    if (error) return LAYER_EXIT[CODES[error.code].layer];
  }
  return 0;
}
