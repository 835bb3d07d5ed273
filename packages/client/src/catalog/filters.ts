import type { ToolAnnotations } from "@modelcontextprotocol/client";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";
import { HINTS, hintsOf } from "./hints.ts";

/**
 * Which tools are meant: those whose wire name matches a glob pattern, those with certain hints, or, with several keys,
 * those for which all of it holds. A hint that a tool does not give has the protocol's default: not read-only,
 * destructive, not idempotent, open world. Hints are what the server says of itself.
 */
export type ToolMatch =
  | string
  | {
      readonly name?: string;
      readonly readOnly?: boolean;
      /** A read-only tool is never destructive. */
      readonly destructive?: boolean;
      readonly idempotent?: boolean;
      readonly openWorld?: boolean;
    };

/** Which of a server's tools are offered and may be called. */
export interface ToolSelection {
  /**
   * Only tools that match one of these. Default: all.
   * @example include: ["get_*", { readOnly: true }]
   */
  include?: readonly ToolMatch[];
  /** None of those that match one of these, also when they are included. */
  exclude?: readonly ToolMatch[];
}

/** A tool as a filter sees it. */
interface Filterable {
  readonly wireName: string;
  readonly annotations: ToolAnnotations;
}

function wrong(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

function checkPattern(pattern: unknown, where: string): void {
  if (typeof pattern !== "string" || pattern === "") {
    wrong(`${where} must be a pattern such as "get_*", got ${JSON.stringify(pattern) ?? typeof pattern}`);
  }
  if (/^!(?!\()/.test(pattern)) wrong(`${where} must not begin with "!"; put the pattern under exclude`);
}

/**
 * Refuses a selection that would not be understood.
 * @throws ConfigError `unknown_option`, `invalid_option`
 */
export function checkSelection(selection: ToolSelection, where: string): void {
  for (const list of ["include", "exclude"] as const) {
    const given: unknown = selection[list];
    if (given === undefined) continue;
    if (!Array.isArray(given)) wrong(`${where}.${list} must be a list of patterns or hints, for example ["get_*"]`);
    for (const [index, match] of given.entries()) {
      const place = `${where}.${list}[${index}]`;
      if (!isRecord(match)) checkPattern(match, place);
      else {
        checkOptions(match, ["name", ...HINTS], place);
        if (Object.keys(match).length === 0) wrong(`${place} is empty; name a pattern or a hint`);
        if (match.name !== undefined) checkPattern(match.name, `${place}.name`);
        for (const hint of HINTS) {
          if (match[hint] !== undefined && typeof match[hint] !== "boolean")
            wrong(`${place}.${hint} must be true or false`);
        }
      }
    }
  }
}

/** A selection made ready. */
export interface ToolFilter {
  /** Why the tool is not offered, or undefined when it is. */
  refusal(tool: Filterable): string | undefined;
  /** Patterns that match none of these tools: most likely a typing error, which under `exclude` leaves a tool in use. */
  idle(tools: readonly Filterable[]): IdlePattern[];
}

/** A pattern of a selection that matches nothing. */
interface IdlePattern {
  readonly pattern: string;
  readonly reason: string;
}

/** The pattern that was probably meant: one for a name that exists, or with a beginning that names have. */
function nearPattern(pattern: string, tools: readonly Filterable[]): string | undefined {
  const stem = /^[^*?[\]{}()!+@]*/.exec(pattern)?.[0] ?? "";
  const rest = pattern.slice(stem.length);
  const names = tools.map(({ wireName }) => (rest === "" ? wireName : wireName.slice(0, stem.length)));
  const near = stem === "" ? undefined : didYouMean(stem, names);
  return near === undefined || near === stem ? undefined : `${near}${rest}`;
}

/** One entry of a selection made ready. */
interface Matcher {
  readonly match: ToolMatch;
  /** By its name alone; a hint that no tool gives is no typing error. */
  readonly named: (name: string) => boolean;
  readonly test: (tool: Filterable) => boolean;
}

function idleIn(
  list: "include" | "exclude",
  matchers: readonly Matcher[],
  tools: readonly Filterable[],
): IdlePattern[] {
  return matchers.flatMap(({ match, named }) => {
    const pattern = typeof match === "string" ? match : match.name;
    if (pattern === undefined || tools.some(({ wireName }) => named(wireName))) return [];
    const near = nearPattern(pattern, tools);
    const hint = near === undefined ? "" : `; did you mean "${near}"?`;
    return [{ pattern, reason: `${list} names it, but the server has no such tool${hint}` }];
  });
}

/** Makes a selection ready; undefined when everything is offered. */
export async function makeFilter(selection: ToolSelection): Promise<ToolFilter | undefined> {
  const { include, exclude = [] } = selection;
  if (include === undefined && exclude.length === 0) return undefined;
  const { default: picomatch } = await import("picomatch");
  const matcher = (match: ToolMatch): Matcher => {
    const { name, ...hints } = typeof match === "string" ? { name: match } : match;
    // a tool's name is no path: a star crosses slashes and dots
    const named = name === undefined ? () => true : picomatch(name, { bash: true, dot: true });
    const wanted = HINTS.flatMap((hint) => {
      const value = hints[hint];
      return value === undefined ? [] : [[hint, value] as const];
    });
    const test = (tool: Filterable) => {
      if (!named(tool.wireName)) return false;
      const has = hintsOf(tool.annotations);
      return wanted.every(([hint, value]) => has[hint] === value);
    };
    return { match, named, test };
  };
  const included = include?.map(matcher);
  const excluded = exclude.map(matcher);
  return {
    refusal: (tool) => {
      if (included && !included.some(({ test }) => test(tool))) return "include does not name it";
      const by = excluded.find(({ test }) => test(tool));
      return by && `exclude names it (${JSON.stringify(by.match)})`;
    },
    idle: (tools) => [...idleIn("include", included ?? [], tools), ...idleIn("exclude", excluded, tools)],
  };
}
