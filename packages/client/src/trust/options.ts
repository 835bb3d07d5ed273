import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, didYouMean, shownValue } from "@tenon/core/internal";
import type { Effect, ServerTrust } from "./types.ts";

/** The effects there are, in the order in which messages name them. */
export const EFFECTS: readonly Effect[] = ["readOnly", "write", "destructive", "openWorld"];

function wrong(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

function checkList(value: unknown, where: string): readonly string[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every((item) => typeof item === "string" && item !== "")) return value;
  return wrong(`${where} must be a list of texts, got ${shownValue(value)}`);
}

/**
 * Refuses what `expectHosts` and `grants` of a server would not understand.
 * @throws ConfigError `invalid_option` or `unknown_option`
 */
export function checkTrust(config: ServerTrust, where: string): void {
  for (const host of checkList(config.expectHosts, `${where}.expectHosts`)) {
    if (!/[/@\s]/.test(host) && URL.canParse(`https://${host.replace(/^\*\./, "")}`)) continue;
    wrong(`${where}.expectHosts takes hosts such as "example.com" or "*.example.com", got ${shownValue(host)}`);
  }
  const { grants } = config;
  if (grants === undefined) return;
  if (!isRecord(grants)) wrong(`${where}.grants must be an object with tools, resources and effects`);
  checkOptions(grants, ["tools", "resources", "effects"], `${where}.grants`);
  checkList(grants.tools, `${where}.grants.tools`);
  checkList(grants.resources, `${where}.grants.resources`);
  for (const effect of checkList(grants.effects, `${where}.grants.effects`)) {
    if (EFFECTS.some((known) => known === effect)) continue;
    const near = didYouMean(effect, EFFECTS);
    const hint = near ? `did you mean "${near}"?` : `known effects: ${EFFECTS.join(", ")}`;
    wrong(`${where}.grants.effects has ${shownValue(effect)}; ${hint}`);
  }
}
