const language = process.env.LC_ALL ?? process.env.LANG ?? "en";

/** The text for the reader's language: Chinese where the locale says so (`LC_ALL`, `LANG`), else English. */
export function say(zh: string, en: string): string {
  return /^zh/i.test(language) ? zh : en;
}
