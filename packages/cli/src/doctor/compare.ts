import type { TargetReport } from "./doctor.ts";
import { listed } from "./tools.ts";
import { type Finding, makeFinding, type Target } from "./visit.ts";

/** A server that was examined. */
export interface Examination {
  readonly target: Target;
  readonly report: TargetReport;
  /** Names of its tools; undefined where its list was not had. */
  readonly tools?: ReadonlySet<string>;
}

const without = (names: ReadonlySet<string>, others: ReadonlySet<string>): string[] =>
  [...names].filter((name) => !others.has(name));

/** What two servers of one configuration have against each other, in the report of the later one. */
function between(earlier: Examination, later: Examination, plainNames: boolean): Finding | undefined {
  if (!earlier.tools || !later.tools) return undefined;
  const { replicaOf } = later.target;
  const at = earlier.report.target;
  if (replicaOf !== undefined && replicaOf === earlier.target.replicaOf) {
    const more = without(later.tools, earlier.tools).map((name) => `${name} only here`);
    const less = without(earlier.tools, later.tools).map((name) => `${name} only at ${at}`);
    const differences = [...more, ...less];
    return differences.length === 0 ? undefined : makeFinding("replica_drift", { evidence: listed(differences) });
  }
  const { tools } = earlier;
  const both = [...later.tools].filter((name) => tools.has(name));
  if (both.length === 0) return undefined;
  const evidence = `${listed(both)}: also at ${at}`;
  if (!plainNames) return makeFinding("tool_collision", { evidence });
  const fix = 'use naming "prefixed" (the default), or exclude one';
  return makeFinding("tool_collision", { evidence, severity: "error", fix });
}

/** The reports, with what only shows when servers are looked at together. */
export function compare(all: readonly Examination[], plainNames: boolean): readonly TargetReport[] {
  return all.map((later, index) => {
    const found = all.slice(0, index).flatMap((earlier) => between(earlier, later, plainNames) ?? []);
    const findings = [...later.report.findings, ...found];
    return { ...later.report, findings, ok: !findings.some(({ severity }) => severity === "error") };
  });
}
