import { describe, expect, it } from "vitest";
import { anything, callable, checkOptions, flag, milliseconds, type OptionChecks, oneOf, positive } from "./options.ts";

interface Options {
  mode?: "fast" | "safe";
  waitMs?: number;
  bytes?: number;
  onEnd?: () => void;
  quiet?: boolean;
  rest?: unknown;
}
const CHECKS: OptionChecks<Options> = {
  mode: oneOf("fast", "safe"),
  waitMs: milliseconds,
  bytes: positive("bytes"),
  onEnd: callable,
  quiet: flag,
  rest: anything,
};
const check = (given: object) => () => checkOptions(given, CHECKS, "run(options)");

describe("a table of options", () => {
  it("takes what fits, and what is left out or undefined", () => {
    expect(check({})).not.toThrow();
    expect(check({ mode: undefined, waitMs: undefined, quiet: undefined })).not.toThrow();
    expect(check({ mode: "safe", waitMs: 5, bytes: 1, onEnd: () => {}, quiet: false, rest: null })).not.toThrow();
  });
  it.each([
    [{ mode: "slow" }, 'run(options).mode must be one of fast, safe, got "slow"'],
    [{ mode: null }, "run(options).mode must be one of fast, safe, got null"],
    [{ waitMs: 0 }, "run(options).waitMs must be a positive number of milliseconds, at most 2147483647, got 0"],
    [{ waitMs: 2 ** 31 }, "got 2147483648"],
    [{ waitMs: Number.POSITIVE_INFINITY }, "got Infinity"],
    [{ bytes: Number.NaN }, "run(options).bytes must be a positive number of bytes, got NaN"],
    [{ bytes: "1" }, 'got "1"'],
    [{ onEnd: "x" }, "run(options).onEnd must be a function, got a value of type string"],
    [{ quiet: "yes" }, 'run(options).quiet must be true or false, got "yes"'],
  ])("refuses %o", (given, message) => {
    expect(check(given)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    expect(check(given)).toThrow(message);
  });
  it("names the option that was meant, out of the same table", () => {
    expect(check({ mod: "fast" })).toThrow('run(options) has no option "mod"; did you mean "mode"?');
  });
  it("says where an option belongs that stands somewhere else", () => {
    const elsewhere = () => checkOptions({ size: 1 }, ["mode"], "run(options)", { size: "limits.size" });
    expect(elsewhere).toThrow('run(options) has no option "size"; did you mean "limits.size"?');
  });
  it("does not take a name of every object for an option", () => {
    expect(check({ toString: 1 })).toThrow('has no option "toString"');
  });
});
