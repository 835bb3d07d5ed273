/** Terminal sequences: colours and cursor moves (CSI), titles and links (OSC, DCS, APC, PM, SOS), two-character ones. */
const SEQUENCES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g;
/** Control characters but tab and line feed, marks of direction, line and paragraph separators, invisible ones, tags. */
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
/** The same for a reader who must see them, with the joiners that fonts hide. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is shown
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Variation_Selector}/gu;
/** Half a character: no terminal and no encoder takes it. */
const LONE = /\p{Surrogate}/gu;

/**
 * Text of a person, a server or a model as a terminal may show it: without escape sequences, control characters (tabs and
 * line ends stay), marks that change the direction of writing, and invisible characters.
 */
export function cleanText(text: string): string {
  return text.replace(LONE, "\ufffd").replaceAll("\r\n", "\n").replace(SEQUENCES, "").replace(CONTROLS, "");
}

/** Text with every hidden or control character but line ends written out, such as `\u{200b}`: for reviews and differences. */
export function visibleText(text: string): string {
  return text.replace(LONE, "\ufffd").replace(HIDDEN, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** A value in a message: JSON, hidden characters written out, at most `length` characters. */
export function shownValue(value: unknown, length = 80): string {
  const text = visibleText(JSON.stringify(value) ?? String(value)).replaceAll("\n", " ");
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
