import type { Writable } from "node:stream";
import { messageOf } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { parseFieldText } from "../question/field-text.ts";
import { checkAnswer, exampleOf } from "../question/field-values.ts";
import type { ElicitationAnswer, ElicitationRequest, Field } from "../types/questions.ts";
import { type Asking, framed, leaves, nextAnswer, onOneLine, shown } from "./asking.ts";
import { openLines, type TerminalInput } from "./lines.ts";
import { type Opener, openInBrowser } from "./open.ts";
import { type Language, type TerminalTexts, terminalTexts } from "./texts.ts";

/** Words that leave a question without answering it; with `!` (or `！`) in front, always. */
const LEAVE: ReadonlyMap<string, "decline" | "cancel"> = new Map([
  ["decline", "decline"],
  ["拒绝回答", "decline"],
  ["拒绝", "decline"],
  ["cancel", "cancel"],
  ["取消", "cancel"],
  ["关闭", "cancel"],
]);
const YES = new Set(["y", "yes", "open", "accept", "是", "打开", "好"]);
const NO = new Set(["n", "no", "否", "不"]);

/** What a form's entry got: a value (undefined leaves it out), or a way to leave the form; undefined when input ended. */
type Filled = { readonly value: unknown } | "decline" | "cancel" | undefined;

function marked(line: string): "decline" | "cancel" | undefined {
  const [, word] = /^[!！]\s*(\S+)$/.exec(line.trim()) ?? [];
  return word === undefined ? undefined : LEAVE.get(word.toLowerCase());
}

function promptOf(texts: TerminalTexts, field: Field): string {
  if (field.name === "value" && field.title === undefined && field.default === undefined) return texts.answerPrompt;
  const title = onOneLine(field.title ?? field.description ?? field.name);
  const hints: string[] = [];
  if (field.kind === "boolean") hints.push(texts.yesNo);
  if (field.kind === "choices") hints.push(texts.several);
  if (field.default !== undefined) hints.push(texts.initial(shown(field.default)));
  else if (!field.required) hints.push(texts.optional);
  return texts.fieldPrompt(title, hints.length > 0 ? ` (${hints.join("; ")})` : "");
}

/** The lines above an entry's prompt: its description, what its value looks like, and its choices. */
function introduce(texts: TerminalTexts, field: Field): string {
  const lines: string[] = [];
  if (field.title !== undefined && field.description !== undefined) lines.push(framed(field.description));
  const example = exampleOf(field);
  if (example !== undefined) lines.push(`│   ${texts.example(example)}`);
  if (field.kind === "choice" || field.kind === "choices") {
    for (const [i, option] of field.options.entries()) lines.push(`│   ${i + 1}) ${onOneLine(option.title)}`);
  }
  return lines.map((line) => `${line}\n`).join("");
}

/** One value of a form, asked for until it fits. */
async function fill(asking: Asking, field: Field): Promise<Filled> {
  const { lines, texts, bareWords } = asking;
  const prompt = promptOf(texts, field);
  for (;;) {
    const line = await nextAnswer(asking, prompt);
    if (line === undefined) return undefined;
    if (field.kind !== "text" && leaves(asking, line)) return undefined;
    const bare = field.kind === "text" ? undefined : LEAVE.get(line.trim().toLowerCase());
    const left = marked(line) ?? (bareWords ? bare : undefined);
    if (left) return left;
    const parsed = parseFieldText(field, line);
    if ("value" in parsed) return { value: parsed.value };
    if (bare) return bare;
    const nothing = parsed.problem.code === "required" && field.kind === "choice";
    // who typed nothing at a choice is told what could be typed
    const problem = nothing ? ({ code: "choice", options: field.options } as const) : parsed.problem;
    lines.write(`${texts.bad(texts.problem(problem, parsed.given))}\n`);
  }
}

async function askForm(
  asking: Asking,
  request: ElicitationRequest & { mode: "form" },
): Promise<ElicitationAnswer | undefined> {
  const { lines, texts } = asking;
  lines.write(`${framed(request.message)}\n`);
  const values: [string, string | number | boolean | string[]][] = [];
  for (const [index, field] of request.fields.entries()) {
    lines.write(introduce(texts, field));
    if (index === 0) lines.write(`└ ${texts.leave}\n`);
    const filled = await fill(asking, field);
    if (filled === undefined) return undefined;
    if (typeof filled === "string") return { action: filled };
    if (filled.value !== undefined) values.push([field.name, filled.value as string]); // parseFieldText made it the field's type
  }
  if (request.fields.length === 0) return askConsent(asking);
  const content = Object.fromEntries(values);
  const [issue] = checkAnswer(request.fields, content);
  if (!issue) return { action: "accept", content };
  lines.write(`${texts.bad(texts.problem(issue.problem, issue.given))}\n`);
  return askForm(asking, request);
}

/** A form without entries asks for a yes only. */
async function askConsent(asking: Asking): Promise<ElicitationAnswer | undefined> {
  const field: Field = { kind: "boolean", name: "value", required: true };
  asking.lines.write(`└ ${asking.texts.leave}\n`);
  const filled = await fill(asking, field);
  if (filled === undefined) return undefined;
  if (typeof filled === "string") return { action: filled };
  return filled.value === true ? { action: "accept", content: {} } : { action: "decline" };
}

async function askUrl(
  asking: Asking,
  request: ElicitationRequest & { mode: "url" },
  open: Opener | undefined,
): Promise<ElicitationAnswer | undefined> {
  const { lines, texts } = asking;
  const { display, punycode, mixedScripts } = request.host;
  lines.write(`${framed(request.message)}\n`);
  lines.write(`${framed(texts.site(display, punycode === display ? undefined : punycode))}\n`);
  if (mixedScripts) lines.write(`${framed(texts.mixedScripts)}\n`);
  lines.write(`${framed(request.url)}\n└ ${texts.leave}\n`);
  for (;;) {
    const line = await nextAnswer(asking, texts.openPrompt);
    if (line === undefined || leaves(asking, line)) return undefined;
    const word = line.normalize("NFKC").trim().toLowerCase();
    const left = marked(line) ?? LEAVE.get(word) ?? (NO.has(word) ? "decline" : undefined);
    if (left) return { action: left };
    if (!YES.has(word)) continue;
    if (open) await show(asking, request.url, open);
    return { action: "accept" };
  }
}

async function show({ lines, texts }: Asking, url: string, open: Opener): Promise<void> {
  try {
    await open(url);
    lines.write(`${texts.opened}\n`);
  } catch (error) {
    // the person agreed and has the address: what is left is to say that they open it themselves
    lines.write(`${texts.notOpened(onOneLine(messageOf(error)))}\n`);
  }
}

/**
 * Asks a person one question of a server in a conversation that goes on: forms entry by entry, addresses with consent.
 * @param open opens an address a person agreed to; left out, they open it themselves
 * @returns undefined when the input ended, the signal fired or the person left: the question stays open
 */
export async function askQuestion(
  request: ElicitationRequest,
  asking: Asking & { readonly server: string; readonly open?: Opener | undefined },
): Promise<ElicitationAnswer | undefined> {
  asking.lines.write(`\n┌ ${asking.texts.asks(onOneLine(asking.server))}\n`);
  for (const { field, message, problem, given } of request.problems ?? []) {
    const reason = problem ? asking.texts.problem(problem, given) : message;
    asking.lines.write(`${framed(asking.texts.bad(field === undefined ? reason : `${field}: ${reason}`))}\n`);
  }
  return request.mode === "url" ? askUrl(asking, request, asking.open) : askForm(asking, request);
}

/** Where the terminal is, and how it speaks. */
export interface AskInTerminalOptions {
  /** Default `process.stdin`. */
  readonly input?: TerminalInput;
  /** Default `process.stdout`. */
  readonly output?: Writable;
  /** Ends the question as cancelled. */
  readonly signal?: AbortSignal;
  /** Who asks, as the person should read it. Default "The server". */
  readonly server?: string;
  /** Default `"en"`. */
  readonly language?: Language;
  /** Texts to say otherwise than the language does. */
  readonly texts?: Partial<TerminalTexts>;
  /** How an address is opened once a person agreed; `false` leaves it to them. Default: the system's browser, no shell. */
  readonly open?: Opener | false;
}

const OPTIONS = ["input", "output", "signal", "server", "language", "texts", "open"] as const satisfies ReadonlyArray<
  keyof AskInTerminalOptions
>;

/** Questions that wait for the same input: a person answers one after the other. */
const waiting = new WeakMap<TerminalInput, Promise<unknown>>();

/**
 * Asks a person one question of a server on a terminal or a pipe. A form is asked entry by entry: choices by number or value,
 * the default by Enter, several choices by commas, yes/no in English and Chinese; what does not fit is asked for again with the
 * reason. An address is shown with its site and opened only after a yes. `!decline` and `!cancel` leave a question; so does
 * the end of the input, as a cancel.
 *
 * @throws ConfigError for an unknown option or text
 * @example createClient({ servers, elicitation: (question, { server, signal }) => askInTerminal(question, { server, signal }) })
 */
export async function askInTerminal(
  request: ElicitationRequest,
  options: AskInTerminalOptions = {},
): Promise<ElicitationAnswer> {
  checkOptions(options, OPTIONS, "askInTerminal(question, options)");
  const { input = process.stdin, output = process.stdout, open = openInBrowser, server, language } = options;
  const before = waiting.get(input);
  const ask = async (): Promise<ElicitationAnswer> => {
    await before;
    const stop = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
    const lines = openLines(input, output, () => stop.abort()); // Ctrl-C closes the question
    try {
      const texts = terminalTexts(language, options.texts);
      const name = server ?? (language === "zh" ? "服务" : "The server");
      const asking = { lines, texts, signal, server: name, open: open === false ? undefined : open };
      return (await askQuestion(request, asking)) ?? { action: "cancel" };
    } finally {
      lines.close();
    }
  };
  const answer = ask();
  waiting.set(
    input,
    answer.catch(() => {}),
  );
  return answer;
}
