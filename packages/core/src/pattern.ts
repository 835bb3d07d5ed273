import { createContext, Script } from "node:vm";
import { TenonError } from "./errors.ts";
import { isRecord } from "./json.ts";

/** Characters a value may have to be tested against somebody else's pattern; longer ones are not tested. */
const MAX_LENGTH = 100_000;
/** Characters of a pattern that is still read. */
const MAX_PATTERN = 10_000;

/** A pattern as JSON Schema means it: with `u` where that is legal, without where it was written for the older rules. @throws SyntaxError */
export function compilePattern(pattern: string): RegExp {
  try {
    return new RegExp(pattern, "u");
  } catch {
    return new RegExp(pattern);
  }
}

const QUANTIFIER = /^(?:[*+?]|\{\d+(?:,\d*)?\})/;

/**
 * Whether a pattern has the shape of those that can take exponential time: a group that is repeated and holds a repetition
 * or a choice itself, such as `(a+)+`, `(a|aa)*` or `((a)*b)+`. A fast pattern may have it too; a pattern without it takes
 * polynomial time at most.
 */
export function isRiskyPattern(pattern: string): boolean {
  /** For each open group: whether it holds a repetition or a choice. */
  const open: boolean[] = [false];
  const mark = () => {
    open[open.length - 1] = true;
  };
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i];
    if (char === "\\") i++;
    else if (char === "[") {
      for (i++; i < pattern.length && pattern[i] !== "]"; i++) if (pattern[i] === "\\") i++;
    } else if (char === "(") {
      open.push(false);
      if (pattern[i + 1] === "?") i++; // (?: (?= (?<: no repetition
    } else if (char === "|") mark();
    else if (char === ")") {
      const inner = open.length > 1 ? open.pop() === true : false;
      const [repeat] = QUANTIFIER.exec(pattern.slice(i + 1)) ?? [];
      if (inner && repeat !== undefined && repeat !== "?") return true;
      if (inner) mark(); // a group around it repeats what is inside
    } else if (char === "*" || char === "+" || char === "{") mark();
  }
  return false;
}

interface Bench {
  readonly box: { work: () => void };
  readonly script: Script;
}
let bench: Bench | undefined;

/**
 * Runs synchronous work that may not take longer than `ms` milliseconds, such as a test against somebody else's pattern.
 * @throws TenonError `too_slow` when it was stopped, or whatever `work` throws
 */
export function withinTime<T>(work: () => T, ms: number): T {
  // node can only interrupt a script, so the work is called from one
  bench ??= { box: createContext({ work: () => {} }) as Bench["box"], script: new Script("work()") }; // the object it got
  const { box, script } = bench;
  const before = box.work;
  let result: { value: T } | undefined;
  box.work = () => {
    result = { value: work() };
  };
  try {
    script.runInContext(box, { timeout: ms });
  } catch (cause) {
    // the error is of the script's own realm, so `instanceof Error` does not hold
    if (!isRecord(cause) || cause.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw cause;
    throw new TenonError(`the work took longer than ${ms} ms and was stopped`, { code: "too_slow", cause });
  } finally {
    box.work = before;
  }
  if (!result) throw new TenonError("the work did not end", { code: "too_slow" });
  return result.value;
}

/** How a text and somebody else's pattern go together. */
export type PatternVerdict = "match" | "no match" | "invalid" | "too slow" | "too long";

/**
 * Tests a text against a pattern that came from somewhere else: a pattern that is none is `invalid`, one that takes longer
 * than `ms` milliseconds is `too slow`, and a text of more than 100,000 characters is not tested. Nothing is thrown.
 *
 * @example testPattern("^(a+)+$", `${"a".repeat(50)}!`) // "too slow", after 50 ms
 */
export function testPattern(pattern: string, text: string, ms = 50): PatternVerdict {
  if (pattern.length > MAX_PATTERN) return "invalid";
  if (text.length > MAX_LENGTH) return "too long";
  let compiled: RegExp;
  try {
    compiled = compilePattern(pattern);
  } catch {
    return "invalid";
  }
  try {
    return withinTime(() => compiled.test(text), ms) ? "match" : "no match";
  } catch (error) {
    if (error instanceof TenonError && error.code === "too_slow") return "too slow";
    return "invalid"; // V8 gives up on patterns that need too much memory
  }
}
