/** 11 digits, starting with 1: the one rule for phone numbers, for the local check and the server. */
export function isPhone(text: string): boolean {
  return /^1\d{10}$/.test(text);
}
