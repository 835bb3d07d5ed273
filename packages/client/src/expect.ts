import { ConfigError } from "@tenon/core";
import { kindOf } from "@tenon/core/internal";

/**
 * Refuses what is no list: programs without types hand anything in, and a text would be read letter by letter.
 * @param where the parameter in words, for example `"acceptTools(file, tools): tools"`
 * @throws ConfigError `invalid_option`
 */
export function expectList(value: unknown, where: string, hint = ""): asserts value is readonly unknown[] {
  if (Array.isArray(value)) return;
  throw new ConfigError(`${where} must be a list, got ${kindOf(value)}${hint}`, { code: "invalid_option" });
}

/** The same for a text. @throws ConfigError `invalid_option` */
export function expectText(value: unknown, where: string): asserts value is string {
  if (typeof value === "string") return;
  throw new ConfigError(`${where} must be a text, got ${kindOf(value)}`, { code: "invalid_option" });
}
