import { domainToUnicode } from "node:url";
import { isLoopback, TrustError } from "@tenon/core";
import { parseUrl, shownValue } from "@tenon/core/internal";
import type { UrlHost } from "./types.ts";

const MAX_URL = 4_096;

/** Alphabets that imitations borrow from; a letter of any other counts as one more. */
const SCRIPTS = [
  "Latin",
  "Cyrillic",
  "Greek",
  "Armenian",
  "Cherokee",
  "Coptic",
  "Georgian",
  "Hebrew",
  "Arabic",
  "Devanagari",
  "Thai",
  "Han",
  "Hiragana",
  "Katakana",
  "Hangul",
  "Bopomofo",
].map((name) => ({ name, letter: new RegExp(`^\\p{Script=${name}}$`, "u") }));
/** Alphabets that are written together every day (Unicode TR 39, "highly restrictive"). */
const TOGETHER = [
  ["Latin", "Han", "Hiragana", "Katakana"],
  ["Latin", "Han", "Bopomofo"],
  ["Latin", "Han", "Hangul"],
];

function mixesScripts(label: string): boolean {
  const used = new Set<string>();
  for (const char of label) {
    if (!/\p{L}/u.test(char) || /\p{Script=Common}/u.test(char)) continue;
    used.add(SCRIPTS.find(({ letter }) => letter.test(char))?.name ?? "other");
  }
  return used.size > 1 && !TOGETHER.some((scripts) => [...used].every((script) => scripts.includes(script)));
}

/** The host of an address as a person should see it. */
function describeHost(url: URL): UrlHost {
  const unicode = domainToUnicode(url.hostname) || url.hostname; // empty for what is no domain
  const port = url.port === "" ? "" : `:${url.port}`;
  return {
    display: `${unicode}${port}`,
    punycode: url.host,
    mixedScripts: unicode.split(".").some(mixesScripts),
  };
}

/** `example.com` is that host, `*.example.com` any below it; with a port, the port too. */
function isExpected(url: URL, pattern: string): boolean {
  const below = pattern.startsWith("*.");
  const probe = `https://${below ? pattern.slice(2) : pattern}`;
  if (!URL.canParse(probe)) return false;
  const wanted = new URL(probe);
  const withPort = /:\d+$/.test(pattern);
  if (withPort && (wanted.port || "443") !== (url.port || (url.protocol === "https:" ? "443" : "80"))) return false;
  return below ? url.hostname.endsWith(`.${wanted.hostname}`) : url.hostname === wanted.hostname;
}

/** Why an address must not be opened or asked, in words that follow it; undefined when nothing speaks against it. */
export function unsafeReason(url: URL): string | undefined {
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return `is not a web page; only https addresses are opened, not ${url.protocol}`;
  }
  if (url.username !== "" || url.password !== "") return "carries a user name or password";
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return "is not encrypted; https is needed for every host but this machine";
  }
  return undefined;
}

/**
 * Checks the address of a url question before anybody sees it: https (http on this machine only), no user name or password
 * in it, and a host that is expected of this server. Nothing is fetched.
 * @returns the address in its one normal form, and its host
 * @throws TrustError `unsafe_url` or `unexpected_host`
 */
export function checkQuestionUrl(
  given: string,
  server: string,
  expectHosts: readonly string[] | undefined,
): { url: string; host: UrlHost } {
  const refuse = (code: string, why: string): never => {
    const address = shownValue(given, 200);
    throw new TrustError(`server "${server}" asks to open ${address}, which ${why}; it was not shown`, {
      code,
      server,
      data: { url: given.slice(0, MAX_URL) },
    });
  };
  if (given.length > MAX_URL) return refuse("unsafe_url", `is longer than ${MAX_URL} characters`);
  const url = parseUrl(given);
  if (!url) return refuse("unsafe_url", "is no address");
  const unsafe = unsafeReason(url);
  if (unsafe) return refuse("unsafe_url", unsafe);
  if (expectHosts && !expectHosts.some((pattern) => isExpected(url, pattern))) {
    const expected = expectHosts.join(", ") || "no host at all";
    return refuse("unexpected_host", `leads to ${url.host}; expectHosts of this server allows ${expected}`);
  }
  return { url: url.href, host: describeHost(url) };
}
