/** Names of headers and variables that hold a right to something. */
const SECRET_NAME =
  /authorization|(^|[-_])auth([-_]|$)|cookie|token|secret|passw|passphrase|credential|(api|access|private|subscription|functions)[-_]?key/i;
/** They repeat names and arguments of the message. */
const OWN = /^mcp-/i;
/** Shorter values are words that stand in any text. */
const MIN_SECRET = 8;
const HIDDEN = "…";

/**
 * The secret values among what a server was given: headers of a request, or variables of a process. Of a header with a scheme,
 * what comes after it; of a cookie, each value.
 */
export function secretsOf(given: Readonly<Record<string, string>>): readonly string[] {
  const found: string[] = [];
  for (const name in given) {
    const value = given[name];
    if (value === undefined || value.length < MIN_SECRET || !SECRET_NAME.test(name) || OWN.test(name)) continue;
    const parts = name.toLowerCase() === "cookie" ? value.split(/; *[^=;]*=|^[^=;]*=/) : [value.replace(/^\w+ +/, "")];
    for (const part of parts) if (part.length >= MIN_SECRET) found.push(part);
  }
  return found;
}

/**
 * Text of a server without the secrets it was given: many repeat what they refuse, and what they say comes into errors, logs and
 * before models.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) if (shown.includes(secret)) shown = shown.replaceAll(secret, HIDDEN);
  return shown;
}

/** The same of bytes, which stay as they are where nothing is in them. */
export function bytesWithoutSecrets(bytes: Uint8Array, secrets: readonly string[]): Uint8Array {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!secrets.some((secret) => buffer.includes(secret))) return bytes;
  return Buffer.from(withoutSecrets(buffer.toString(), secrets));
}
