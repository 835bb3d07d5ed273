export { type Approval, approveInTerminal, type TerminalDecision } from "./approve.ts";
export { type AskInTerminalOptions, askInTerminal, askQuestion } from "./ask.ts";
export type { Asking } from "./asking.ts";
export { type Lines, openLines, type TerminalInput } from "./lines.ts";
export { type Opener, openInBrowser } from "./open.ts";
export { type Decision, type Language, type TerminalTexts, terminalTexts } from "./texts.ts";
