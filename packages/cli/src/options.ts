import { InvalidArgumentError } from "commander";

/** For options that may be repeated, and hold several values between spaces: `--scope "a b" --scope c`. */
export const words = (value: string, before: readonly string[] = []): string[] => [
  ...before,
  ...value.split(/\s+/).filter(Boolean),
];

/** For options that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** A whole number within limits. */
export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };

/** An absolute http(s) address without a fragment, as it was written. */
export function httpUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !text.includes("#") && !url.username && !url.password) return text;
  throw new InvalidArgumentError("Expected an http or https address without a fragment and without credentials.");
}
