import type { Answer, ApprovalDecision, Question, QuestionAction } from "@tenon/agent";
import {
  checkAnswer,
  type ElicitationAnswer,
  type ElicitationRequest,
  type Field,
  parseFieldText,
} from "@tenon/client";
import { isRecord } from "@tenon/core";
import { clean } from "../clean.ts";
import type { Texts } from "../texts/index.ts";
import { isQuit } from "./commands.ts";
import type { Lines } from "./lines.ts";

/** How the terminal asks a person: where to read and write, in which language, until when. */
interface Asking {
  lines: Lines;
  t: Texts;
  signal: AbortSignal;
  /** The person leaves the conversation; the question stays open. */
  leave(): void;
}

type Decision = QuestionAction["decisions"][number];

const WORDS: Readonly<Record<string, Decision>> = {
  approve: "approve",
  批准: "approve",
  同意: "approve",
  y: "approve",
  yes: "approve",
  edit: "edit",
  修改: "edit",
  reject: "reject",
  拒绝: "reject",
  n: "reject",
  no: "reject",
  respond: "respond",
  答复: "respond",
  回复: "respond",
};

/** Words that leave a form without filling it. */
const LEAVE: Readonly<Record<string, "decline" | "cancel">> = {
  decline: "decline",
  拒绝回答: "decline",
  拒绝: "decline",
  cancel: "cancel",
  关闭: "cancel",
};

/** Characters of a decision with its reason, or of one answer. */
const LINE_LENGTH = 4_000;

/** A line a person gives to a question; one that is far too long is asked for again. */
async function nextAnswer({ lines, t, signal }: Asking, prompt: string): Promise<string | undefined> {
  for (;;) {
    const line = await lines.next(prompt, signal);
    if (line === undefined || line.length <= LINE_LENGTH) return line;
    lines.write(`${t.chat.answerTooLong(line.length, LINE_LENGTH)}\n`);
  }
}

/** Text from elsewhere inside a frame: its own line breaks must not look like ours. */
const framed = (text: string): string => `│ ${clean(text).trim().replaceAll("\n", "\n│ ")}`;

const show = (value: unknown): string => clean(typeof value === "string" ? value : JSON.stringify(value));

/** One argument after the other, the old value as default. Undefined at the end of the input. */
async function editArguments(asking: Asking, action: QuestionAction): Promise<Record<string, unknown> | undefined> {
  const properties = isRecord(action.schema?.properties) ? action.schema.properties : {};
  const edited: Record<string, unknown> = { ...action.args };
  for (const name of new Set([...Object.keys(action.args), ...Object.keys(properties)])) {
    if (name === "caller_id") continue; // the system fills it in; a model may have written one all the same
    const line = await nextAnswer(asking, asking.t.chat.editPrompt(clean(name), show(action.args[name] ?? "")));
    if (line === undefined) return undefined;
    if (line.trim() === "") continue;
    const property = properties[name];
    // text where the schema wants text, else JSON where it is JSON
    edited[name] = isRecord(property) && property.type === "string" ? line.trim() : parseLoosely(line);
  }
  return edited;
}

function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}

/** The decision a line spells, `"again"` after telling what is wrong with it, or undefined at the end of the input. */
async function readDecision(
  asking: Asking,
  action: QuestionAction,
  line: string,
): Promise<ApprovalDecision | "again" | undefined> {
  const { lines, t } = asking;
  if (isQuit(line)) {
    asking.leave();
    return undefined;
  }
  const [, word = "", rest = ""] = /^\s*(\S*)\s*(.*)$/s.exec(line.replace(/[:：]/, " ")) ?? [];
  const decision = WORDS[word.toLowerCase()];
  if (!decision || !action.decisions.includes(decision)) {
    lines.write(`${t.chat.unknownDecision(clean(word).slice(0, 40), action.decisions.join(" / "))}\n`);
    return "again";
  }
  switch (decision) {
    case "approve":
      return { type: "approve" };
    case "reject":
      return { type: "reject", message: rest || t.chat.rejectDefault };
    case "respond":
      return { type: "respond", message: rest || t.chat.respondDefault };
    case "edit": {
      const given = /^\s*[^\s:：]+[\s:：]+(\S.*)$/s.exec(line)?.[1];
      const changes = given ? parseLoosely(given) : await editArguments(asking, action);
      if (changes === undefined) return undefined;
      if (!isRecord(changes)) {
        lines.write(`${t.chat.badEdit("JSON")}\n`);
        return "again";
      }
      return { type: "edit", editedAction: { name: action.name, args: { ...action.args, ...changes } } };
    }
  }
}

async function decide(
  asking: Asking,
  action: QuestionAction,
  n: number,
  total: number,
): Promise<ApprovalDecision | undefined> {
  const { lines, t } = asking;
  lines.write(`\n┌ ${t.chat.approvalTitle(n, total, clean(action.tool ?? action.name))}\n`);
  lines.write(`${framed(action.description)}\n│ ${t.chat.arguments} ${show(action.args)}\n`);
  for (const decision of action.decisions) lines.write(`│   ${t.chat.decisions[decision] ?? decision}\n`);
  lines.write("└\n");
  for (;;) {
    const line = await nextAnswer(asking, t.chat.decisionPrompt);
    if (line === undefined) return undefined;
    const decision = await readDecision(asking, action, line);
    if (decision !== "again") return decision;
  }
}

function describeField({ t }: Asking, field: Field): string {
  const title = clean(field.title ?? field.description ?? field.name);
  if (field.kind === "choice" || field.kind === "choices") return title;
  const hint = field.default === undefined ? "" : ` [${show(field.default)}]`;
  return t.chat.fieldPrompt(title, field.kind === "boolean" ? ` (yes/no)${hint}` : hint);
}

/** One value of a form: asked until it fits. `"decline"` and `"cancel"` leave the form. */
async function fill(asking: Asking, field: Field): Promise<{ value: unknown } | "decline" | "cancel" | undefined> {
  const { lines, t } = asking;
  if (field.kind === "choice" || field.kind === "choices") {
    for (const [i, option] of field.options.entries()) lines.write(`│   ${i + 1}) ${clean(option.title)}\n`);
  }
  lines.write(`└ ${t.chat.formActions}\n`);
  const prompt = field.name === "value" ? t.chat.answerPrompt : describeField(asking, field);
  for (;;) {
    const line = await nextAnswer(asking, prompt);
    if (line === undefined) return undefined;
    const word = line.trim();
    if (field.kind !== "text" && isQuit(word)) {
      asking.leave();
      return undefined;
    }
    const leave = LEAVE[word.toLowerCase()];
    if (leave) return leave;
    if (word === "" && field.default !== undefined) return { value: field.default };
    if (word === "" && !field.required) return { value: undefined };
    const parsed = parseFieldText(field, word);
    if ("value" in parsed) return { value: parsed.value };
    const hint = field.kind === "choice" ? t.chat.choose(field.options.length) : parsed.issue;
    lines.write(`${t.chat.badAnswer(clean(hint))}\n`);
  }
}

async function answerForm(asking: Asking, request: ElicitationRequest): Promise<ElicitationAnswer | undefined> {
  const { lines, t } = asking;
  lines.write(`${framed(request.message)}\n`);
  if (request.mode === "url") {
    lines.write(
      `│ ${t.chat.urlQuestion(clean(request.url), clean(URL.parse(request.url)?.host ?? "?"))}\n└ ${t.chat.formActions}\n`,
    );
    for (;;) {
      const word = (await nextAnswer(asking, t.chat.answerPrompt))?.trim().toLowerCase();
      if (word === undefined) return undefined;
      if (word === "accept") return { action: "accept" };
      const leave = LEAVE[word];
      if (leave) return { action: leave };
    }
  }
  const content: Record<string, string | number | boolean | string[]> = {};
  for (const field of request.fields) {
    const filled = await fill(asking, field);
    if (filled === undefined) return undefined;
    if (typeof filled === "string") return { action: filled };
    if (filled.value !== undefined) content[field.name] = filled.value as string; // parseFieldText made it the field's type
  }
  const [issue] = checkAnswer(request.fields, content);
  if (!issue) return { action: "accept", content };
  lines.write(`${t.chat.badAnswer(clean(issue.message))}\n`);
  return answerForm(asking, request);
}

/**
 * Asks a person one question of a run, one line a part.
 * @returns undefined when the input ends or the person leaves: the question stays open
 */
export async function askPerson(
  question: Question,
  asking: Asking & { serverTitle(server: string): string },
): Promise<Answer | undefined> {
  const { lines, t } = asking;
  if (question.error !== undefined) lines.write(`${t.chat.badAnswer(clean(question.error).replace(/\.$/, ""))}\n`);
  if (question.kind === "approval") {
    const decisions: ApprovalDecision[] = [];
    for (const [i, action] of question.actions.entries()) {
      const decision = await decide(asking, action, i + 1, question.actions.length);
      if (decision === undefined) return undefined;
      decisions.push(decision);
    }
    return { decisions };
  }
  const answers: Record<string, ElicitationAnswer> = {};
  for (const [key, request] of Object.entries(question.questions)) {
    lines.write(`\n┌ ${t.chat.formTitle(asking.serverTitle(question.server))}\n`);
    const answer = await answerForm(asking, request);
    if (answer === undefined) return undefined;
    answers[key] = answer;
  }
  return { answers };
}
