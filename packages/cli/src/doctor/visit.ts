import type { EndpointConfig } from "@tenon/client/internal";
import { withoutSecrets } from "@tenon/client/internal";
import { type JsonObject, TenonError } from "@tenon/core";
import type { KeyRing } from "@tenon/core/contract";
import { oneLine } from "../text.ts";
import { CODES, type Code, type Severity } from "./codes.ts";

/** One thing that was found, in one line each. */
export interface Finding {
  readonly code: Code;
  readonly severity: Severity;
  readonly cause: string;
  /** What was seen. */
  readonly evidence: string;
  /** What to do. */
  readonly fix: string;
}

/** What the place that finds something knows better than the table of codes. */
export interface Detail {
  readonly evidence: string;
  readonly severity?: Severity;
  readonly fix?: string;
}

/** What was learnt about a server on the way. */
export interface Facts {
  revision?: string;
  server?: string;
  proxy?: string;
  tools?: number;
  contract?: { version: string; serverId: string; signature: string; required: readonly string[] };
  /** Milliseconds. */
  latency: Record<string, number>;
}

/** How far and with what the targets of one run are examined. */
export interface ExamOptions {
  /** Milliseconds for everything; default 4,000. */
  readonly timeoutMs?: number;
  /** Sent with every request to a server reached by an address. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The only revision that is asked for. */
  readonly revision?: string;
  /** Keys to check contracts with. */
  readonly keys?: KeyRing;
  /** Whether a server without a contract is at fault. */
  readonly contractExpected?: boolean;
  /** The context that calls would carry. */
  readonly context?: unknown;
  /** What the client takes a context to be. */
  readonly contextSchema?: JsonObject;
  /** Whether models see the tools of all servers without the servers' names: then two of one name cannot be told apart. */
  readonly plainNames?: boolean;
}

/** A server to examine. */
export interface Target {
  /** How it is called in the report. */
  readonly name: string;
  /** Whether that is its name in a configuration, which stands before the names of its tools. */
  readonly configured: boolean;
  /** The configured server that this is one replica of. */
  readonly replicaOf?: string;
  readonly config: EndpointConfig;
}

/** Characters of one line of a finding. */
const MAX_SHOWN = 300;

/** The cause was found: what comes after it on the way would only be a consequence. */
export class Diagnosis extends TenonError {
  readonly finding: Finding;
  constructor(finding: Finding) {
    super(finding.cause, { code: finding.code });
    this.finding = finding;
  }
}

/** Time that is left for everything. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Milliseconds, never below 1. */
  left(): number;
  /** Aborts after so many milliseconds, or with the whole. */
  within(ms: number): AbortSignal;
  readonly totalMs: number;
}

/** One examination of one server: what was learnt, what was found, and how long it may take. */
export interface Visit {
  readonly target: Target;
  readonly options: ExamOptions;
  readonly deadline: Deadline;
  readonly facts: Facts;
  readonly findings: Finding[];
  /** Values that no line of the report may show. */
  readonly secrets: string[];
  /** Others' text for a line of the report. */
  shown(text: string, length?: number): string;
  /** Notes a finding and goes on. */
  note(code: Code, detail: Detail): void;
  /** Notes a finding and ends the examination. */
  fail(code: Code, detail: Detail): never;
}

/** A deadline that begins now. */
export function startDeadline(ms: number): Deadline {
  const totalMs = Math.max(1, Math.round(ms));
  const signal = AbortSignal.timeout(totalMs);
  const until = performance.now() + totalMs;
  const left = () => Math.max(1, Math.round(until - performance.now()));
  return {
    signal,
    left,
    totalMs,
    within: (ms) => AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.round(ms)))]),
  };
}

/** A finding; `shown` makes others' text fit to be shown. */
export function makeFinding(
  code: Code,
  { evidence, severity, fix }: Detail,
  shown: (text: string) => string = oneLine,
): Finding {
  const info = CODES[code];
  const parts = { cause: info.cause, evidence: shown(evidence), fix: shown(fix ?? info.fix) };
  return { code, severity: severity ?? info.severity, ...parts };
}

/** Begins the examination of a server. */
export function startVisit(target: Target, options: ExamOptions, deadline: Deadline): Visit {
  const findings: Finding[] = [];
  const secrets: string[] = [];
  const shown = (text: string, length = MAX_SHOWN): string => {
    const clean = oneLine(withoutSecrets(text, secrets)).trim();
    return clean.length > length ? `${clean.slice(0, length - 1)}…` : clean;
  };
  return {
    target,
    options,
    deadline,
    facts: { latency: {} },
    findings,
    secrets,
    shown,
    note: (code, detail) => void findings.push(makeFinding(code, detail, shown)),
    fail: (code, detail) => {
      throw new Diagnosis(makeFinding(code, detail, shown));
    },
  };
}

/** Milliseconds since a moment of `performance.now()`. */
export const since = (began: number): number => Math.round(performance.now() - began);
