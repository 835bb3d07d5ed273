import { ConfigError } from "./errors.ts";
import { isRecord } from "./json.ts";
import { checkOptions } from "./options.ts";

/** Kinds of personal or secret text that are found by their shape. */
const SHAPES = {
  email: /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/gu,
  phone: /(?<![\w.])(?:\+\d{1,3}[ -]?)?(?:1[3-9]\d{9}|\(?\d{3}\)?[ -]\d{3,4}[ -]\d{4})(?![\w.])/g,
  card: /(?<!\d)(?:\d{4}[ -]?){3}\d{1,7}(?!\d)/g,
  // with a digit or padding in it, since "basic understanding" is no credential
  bearer: /\b(?:bearer|basic)\s+(?=\S{0,500}[\d=])[\w~+/.=-]{8,}/gi,
  // the password of an address, such as that of a database, with the name before it
  userinfo: /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/?#:@]{0,256}:[^\s/?#]{1,256}(?=@)/gi,
  jwt: /\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]{5,}/g,
} as const;

/** What is secret. */
export interface RedactRules {
  /**
   * Names of fields whose values go, whatever they are; compared without case, `-` and `_`, so `apiKey` finds `API_KEY`.
   * Default: password, secret, token, api key, authorization, cookie and their like.
   */
  keys?: readonly string[];
  /** Text that goes, wherever it stands: expressions of your own or a named shape. Default `["bearer", "jwt", "userinfo"]`. */
  patterns?: readonly (RegExp | keyof typeof SHAPES)[];
  /** What stands there instead. Default `"[redacted]"`. */
  replacement?: string;
}

const KEYS =
  "password passwd passphrase secret clientsecret token accesstoken refreshtoken idtoken apikey authorization cookie setcookie privatekey credential credentials".split(
    " ",
  );
/** Deeper values are replaced as a whole: nobody could say what is in them. */
const MAX_DEPTH = 200;

const plain = (key: string): string => key.toLowerCase().replace(/[-_\s]/g, "");
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

function patternOf(rule: unknown): RegExp {
  if (rule instanceof RegExp) return new RegExp(rule.source, [...new Set(`${rule.flags.replace("y", "")}g`)].join(""));
  if (typeof rule === "string" && Object.hasOwn(SHAPES, rule)) return SHAPES[rule as keyof typeof SHAPES]; // it is one
  throw new ConfigError(
    `a pattern must be a regular expression or one of ${Object.keys(SHAPES).join(", ")}, got ${JSON.stringify(rule)}`,
    { code: "invalid_option" },
  );
}

/** Base64 of pictures, sound and files: no text, and a change would break it. */
function isBinary(parent: Readonly<Record<string, unknown>>, key: string): boolean {
  if (key === "blob") return typeof parent.uri === "string";
  return key === "data" && (parent.type === "image" || parent.type === "audio");
}

/**
 * A function that returns its value without what is secret by the rules, at any depth, also where a text is itself JSON or
 * has `key=value` in it. The value given is never changed; what holds nothing secret is returned as it is.
 *
 * @throws ConfigError for rules nobody understands
 * @example const clean = redactor({ keys: ["iban"], patterns: ["email"] }); clean({ iban: "DE…" }) // { iban: "[redacted]" }
 */
export function redactor(rules: RedactRules = {}): <T>(value: T) => T {
  checkOptions(rules, ["keys", "patterns", "replacement"], "redactor(rules)");
  const { keys = KEYS, patterns = ["bearer", "jwt", "userinfo"], replacement = "[redacted]" } = rules;
  const names = new Set(keys.map(plain));
  const finders = patterns.map(patternOf);
  // `apikey` is to find `api_key` in free text as well
  const loose = [...names].map((name) => [...name].map(escaped).join("[-_ ]?")).join("|");
  const inText = new RegExp(
    `((?<![\\p{L}\\p{N}])(?:${loose})(?:"\\s*:\\s*|'\\s*:\\s*|\\s*=\\s*))("(?:[^"\\\\]|\\\\.)*"|'[^']*'|[^\\s,;&"'}]+)`,
    "giu",
  );

  const cleanText = (text: string, depth: number): string => {
    if (/^\s*[[{"]/.test(text)) {
      try {
        const value: unknown = JSON.parse(text);
        const cleaned = clean(value, depth + 1);
        return cleaned === value ? text : JSON.stringify(cleaned);
      } catch {
        // it only looks like JSON
      }
    }
    let out = text;
    // in quotation marks where the value was, so that JSON around it stays JSON; most texts have neither sign
    if (names.size > 0 && /[=:]/.test(text)) {
      out = out.replace(inText, (_, before: string, value: string) => {
        const mark = value.startsWith('"') ? '"' : value.startsWith("'") ? "'" : "";
        return `${before}${mark}${replacement}${mark}`;
      });
    }
    for (const finder of finders) out = out.replace(finder, () => replacement);
    return out;
  };

  const clean = (value: unknown, depth: number): unknown => {
    if (typeof value === "string") return depth > MAX_DEPTH ? replacement : cleanText(value, depth);
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_DEPTH) return replacement;
    if (Array.isArray(value)) {
      const items = value.map((item) => clean(item, depth + 1));
      return items.some((item, i) => item !== value[i]) ? items : value;
    }
    // objects with a class are no JSON; they stay as they are
    const proto: unknown = Object.getPrototypeOf(value);
    if (!isRecord(value) || (proto !== Object.prototype && proto !== null)) return value;
    const given: Record<string, unknown> = value;
    const entries = Object.entries(given).map(([key, item]): [string, unknown] => {
      if (names.has(plain(key)) && item !== null && item !== undefined) return [key, replacement];
      return [key, isBinary(given, key) ? item : clean(item, depth + 1)];
    });
    return entries.some(([key, item]) => item !== given[key]) ? Object.fromEntries(entries) : value;
  };
  // what is replaced is text where a field's type says so; whoever redacts gives up the type of secret fields
  return <T>(value: T) => clean(value, 0) as T;
}
