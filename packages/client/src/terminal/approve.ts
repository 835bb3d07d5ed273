import { isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { type Asking, framed, leaves, nextAnswer, onOneLine, shown } from "./asking.ts";
import type { Decision } from "./texts.ts";

/** A call that waits for a person's decision. */
export interface Approval {
  /** The tool's model-side name. */
  readonly name: string;
  /** How the tool is called on the screen; its name when left out. */
  readonly tool?: string | undefined;
  readonly description: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** JSON Schema of the arguments, for editing them one by one. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** What may be decided. */
  readonly decisions: readonly Decision[];
}

/** A decision in the shape LangChain's human-in-the-loop middleware reads. */
export type TerminalDecision =
  | { type: "approve" }
  | { type: "edit"; editedAction: { name: string; args: Record<string, unknown> } }
  | { type: "reject"; message: string }
  | { type: "respond"; message: string };

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

function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}

/** One argument after the other, the old value as default. Undefined at the end of the input. */
async function editArguments(
  asking: Asking,
  action: Approval,
  fixed: readonly string[],
): Promise<Record<string, unknown> | undefined> {
  const properties = isRecord(action.schema?.properties) ? action.schema.properties : {};
  const edited: Record<string, unknown> = { ...action.args };
  for (const name of new Set([...Object.keys(action.args), ...Object.keys(properties)])) {
    if (fixed.includes(name)) continue;
    const line = await nextAnswer(asking, asking.texts.editPrompt(onOneLine(name), shown(action.args[name] ?? "")));
    if (line === undefined) return undefined;
    if (line.trim() === "") continue;
    const property = properties[name];
    // text where the schema wants text, else JSON where it is JSON
    edited[name] = isRecord(property) && property.type === "string" ? line.trim() : parseLoosely(line);
  }
  return edited;
}

/** The decision a line spells, `"again"` after telling what is wrong with it, or undefined when the question stays open. */
async function readDecision(
  asking: Asking,
  action: Approval,
  fixed: readonly string[],
  line: string,
): Promise<TerminalDecision | "again" | undefined> {
  const { lines, texts } = asking;
  if (leaves(asking, line)) return undefined;
  const [, word = "", rest = ""] = /^\s*(\S*)\s*(.*)$/s.exec(line.replace(/[:：]/, " ")) ?? [];
  const decision = Object.hasOwn(WORDS, word.toLowerCase()) ? WORDS[word.toLowerCase()] : undefined;
  if (!decision || !action.decisions.includes(decision)) {
    lines.write(`${texts.unknownDecision(onOneLine(word).slice(0, 40), action.decisions.join(" / "))}\n`);
    return "again";
  }
  switch (decision) {
    case "approve":
      return { type: "approve" };
    case "reject":
      return { type: "reject", message: rest || texts.rejected };
    case "respond":
      return { type: "respond", message: rest || texts.responded };
    case "edit": {
      const given = /^\s*[^\s:：]+[\s:：]+(\S.*)$/s.exec(line)?.[1];
      const changes = given ? parseLoosely(given) : await editArguments(asking, action, fixed);
      if (changes === undefined) return undefined;
      if (!isRecord(changes)) {
        lines.write(`${texts.badEdit}\n`);
        return "again";
      }
      return { type: "edit", editedAction: { name: action.name, args: { ...action.args, ...changes } } };
    }
  }
}

/**
 * Shows a call to a person and reads what they decide: approve, edit, reject or respond, in English or Chinese, asked again
 * until it is one of the allowed ones.
 * @param place which of how many calls this is, and arguments nobody edits one by one because a program fills them in
 * @returns undefined when the input ended, the signal fired or the person left: the question stays open
 */
export async function approveInTerminal(
  action: Approval,
  asking: Asking,
  place: { readonly n?: number; readonly total?: number; readonly fixed?: readonly string[] } = {},
): Promise<TerminalDecision | undefined> {
  checkOptions(place, ["n", "total", "fixed"], "approveInTerminal(action, asking, place)");
  const { lines, texts } = asking;
  const { n = 1, total = 1, fixed = [] } = place;
  lines.write(`\n┌ ${texts.approval(n, total, onOneLine(action.tool ?? action.name))}\n`);
  lines.write(`${framed(action.description)}\n${framed(`${texts.arguments} ${shown(action.args)}`)}\n`);
  for (const decision of action.decisions) lines.write(`│   ${texts.decisions[decision]}\n`);
  lines.write("└\n");
  for (;;) {
    const line = await nextAnswer(asking, texts.decisionPrompt);
    if (line === undefined) return undefined;
    const decision = await readDecision(asking, action, fixed, line);
    if (decision !== "again") return decision;
  }
}
