import { ConfigError, isRecord } from "@tenon/core";

/** Words that name a secret wherever they stand: `userPassword`, `client_secret`, `cvv2`. */
const ANYWHERE = new Set("password passwd passphrase passcode pwd secret cvv cvv2 cvc cvc2 otp totp mfa".split(" "));
/** Words that name a secret only at the end: `accessToken` and `card_pin` are, `tokens_used` and `pin_color` are not. */
const LAST = new Set("token pin credential credentials".split(" "));
/** Pairs of words that name a secret: `apiKey`, `cardNumber`, `security_code`. */
const PAIRS = [
  ["api", "key"],
  ["access", "key"],
  ["private", "key"],
  ["card", "number"],
  ["security", "code"],
  ["recovery", "code"],
  ["seed", "phrase"],
] as const;

/** `apiKey`, `API_KEY` and `api key` are the same words. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean);
}

/** Whether a field's name says that its value is a secret. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name);
  const last = words.at(-1);
  const joined = words.join("");
  return (
    words.some((word) => ANYWHERE.has(word)) ||
    (last !== undefined && LAST.has(last)) ||
    PAIRS.some(
      ([first, second]) =>
        joined === first + second || words.some((word, i) => word === first && words[i + 1] === second),
    )
  );
}

/**
 * Refuses a form field that asks for a secret: a form travels through the client and perhaps its model (2026-07-28,
 * elicitation). Only what a person types counts: a choice or a yes/no named `rotateToken` tells no secret.
 * @throws ConfigError `code: "secret_field"` naming the field
 */
export function refuseSecret(name: string, schema: unknown): void {
  const { type, format, title, writeOnly, enum: choices, oneOf } = isRecord(schema) ? schema : {};
  const typed = (type === "string" || type === "number" || type === "integer") && !choices && !oneOf;
  if (!typed) return;
  const secret =
    format === "password" ||
    writeOnly === true ||
    isSecretName(name) ||
    (typeof title === "string" && isSecretName(title));
  if (!secret) return;
  throw new ConfigError(
    `ctx.elicit: the field "${name}" asks for a secret, which must not travel through the client; ` +
      "send the person to a page of yours with ctx.elicitUrl(message, url) instead",
    { code: "secret_field", data: { field: name } },
  );
}
