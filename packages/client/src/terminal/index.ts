export { type Approval, approveInTerminal, type TerminalDecision } from "./approve.ts";
export { type AskInTerminalOptions, askInTerminal, askQuestion } from "./ask.ts";
export type { Asking } from "./asking.ts";
export { type Lines, openLines } from "./lines.ts";
export { openInBrowser } from "./open.ts";
export { type TerminalTexts, terminalTexts } from "./texts.ts";
