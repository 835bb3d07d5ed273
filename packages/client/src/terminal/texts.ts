import { cleanText } from "@tenon/core";
import { checkOptions, shownValue } from "@tenon/core/internal";
import type { FieldProblem } from "../question/field-values.ts";

/** Languages the terminal speaks by itself. */
export type Language = "en" | "zh";

/** Every text a person reads at a question; give `texts` to say some of them otherwise. */
export interface TerminalTexts {
  /** The first line of a question. */
  readonly asks: (server: string) => string;
  /** How a question is left without an answer; `!decline` and `!cancel` are always understood. */
  readonly leave: string;
  /** Where the answer to a question of one entry is typed. */
  readonly answerPrompt: string;
  /** Where an entry is typed. */
  readonly fieldPrompt: (title: string, hint: string) => string;
  /** Behind the title of a yes-or-no entry. */
  readonly yesNo: string;
  /** Behind the title of a list of choices. */
  readonly several: string;
  /** Above the prompt of an entry with a form of its own, such as a date. */
  readonly example: (example: string) => string;
  /** Behind the title of an entry that Enter leaves out. */
  readonly optional: string;
  /** Behind the title of an entry whose default Enter takes. */
  readonly initial: (value: string) => string;
  /** A typed value does not fit. */
  readonly bad: (problem: string) => string;
  /** A line is longer than a person would type. */
  readonly tooLong: (length: number, limit: number) => string;
  /** What is wrong with a typed value. */
  readonly problem: (problem: FieldProblem, given: unknown) => string;
  /** Which site an address leads to. */
  readonly site: (display: string, punycode: string | undefined) => string;
  /** The site's name mixes alphabets. */
  readonly mixedScripts: string;
  /** Whether to open an address. */
  readonly openPrompt: string;
  /** An address was opened. */
  readonly opened: string;
  /** An address could not be opened. */
  readonly notOpened: (reason: string) => string;
  /** The first line of a call that waits for a decision. */
  readonly approval: (n: number, total: number, tool: string) => string;
  /** Above the arguments of such a call. */
  readonly arguments: string;
  /** What each decision does. */
  readonly decisions: Readonly<Record<Decision, string>>;
  /** Where the decision is typed. */
  readonly decisionPrompt: string;
  /** What was typed is no decision here. */
  readonly unknownDecision: (word: string, allowed: string) => string;
  /** Where an argument is typed anew. */
  readonly editPrompt: (name: string, value: string) => string;
  /** Typed arguments cannot be read. */
  readonly badEdit: string;
  /** The reason of a rejection where the person gives none. */
  readonly rejected: string;
  /** The answer to the model where the person gives none. */
  readonly responded: string;
}

/** What a reviewer may decide about a call. */
export type Decision = "approve" | "edit" | "reject" | "respond";

const got = (given: unknown): string => cleanText(shownValue(given, 60));

const en: TerminalTexts = {
  asks: (server) => `${server} asks:`,
  leave: "!decline  do not answer   !cancel  close the question",
  answerPrompt: "answer> ",
  fieldPrompt: (title, hint) => `${title}${hint}> `,
  yesNo: "yes/no",
  several: "one or more, separated by commas",
  example: (example) => `such as ${example}`,
  optional: "Enter leaves it out",
  initial: (value) => `Enter: ${value}`,
  bad: (problem) => `The answer does not fit: ${problem}. Please answer again.`,
  tooLong: (length, limit) => `This line has ${length} characters, more than the limit of ${limit}; please try again.`,
  problem: (problem, given) => {
    switch (problem.code) {
      case "required":
        return "an answer is needed";
      case "not_asked":
        return "it was not asked for";
      case "type":
        if (problem.expected === "boolean") return `answer yes or no, not ${got(given)}`;
        return `${problem.expected === "number" ? "a number" : `a ${problem.expected}`} is expected, not ${got(given)}`;
      case "too_short":
        return `at least ${problem.limit} characters are expected`;
      case "too_long":
        return `at most ${problem.limit} characters are expected`;
      case "too_small":
        return `at least ${problem.limit} is expected, not ${got(given)}`;
      case "too_large":
        return `at most ${problem.limit} is expected, not ${got(given)}`;
      case "too_few":
        return `choose at least ${problem.limit}`;
      case "too_many":
        return `choose at most ${problem.limit}`;
      case "pattern":
        return `it must match ${cleanText(problem.pattern).slice(0, 200)}`;
      case "format":
        return `a valid ${problem.format} is expected, such as ${problem.example}`;
      case "choice":
        return `type a number from 1 to ${problem.options.length}${given === undefined ? "" : `, not ${got(given)}`}`;
      case "twice":
        return `${got(given)} is there twice`;
    }
  },
  site: (display, punycode) => `Site: ${display}${punycode === undefined ? "" : ` (${punycode})`}`,
  mixedScripts: "Careful: this name mixes alphabets, as imitations of known sites do.",
  openPrompt: "open it in the browser (yes/no)> ",
  opened: "It was opened in the browser.",
  notOpened: (reason) => `It could not be opened (${reason}); please open the address yourself.`,
  approval: (n, total, tool) => `Approval needed ${n}/${total}: ${tool}`,
  arguments: "arguments",
  decisions: {
    approve: "approve  run it",
    edit: 'edit     change the arguments (or edit {"name": value})',
    reject: "reject   do not run it (with a reason: reject why)",
    respond: "respond  do not run it, answer yourself (respond text)",
  },
  decisionPrompt: "decision> ",
  unknownDecision: (word, allowed) => `"${word}" is not a decision here; type one of: ${allowed}`,
  editPrompt: (name, value) => `${name} (now ${value}, Enter keeps it)> `,
  badEdit: "The arguments are not right: JSON. Please decide again.",
  rejected: "the reviewer rejected the action",
  responded: "Please check with the user first",
};

const zh: TerminalTexts = {
  asks: (server) => `${server} 询问：`,
  leave: "!decline  拒绝回答   !cancel  关闭问题",
  answerPrompt: "回答> ",
  fieldPrompt: (title, hint) => `${title}${hint}> `,
  yesNo: "是/否",
  several: "可多选，用逗号分隔",
  example: (example) => `例如 ${example}`,
  optional: "回车跳过",
  initial: (value) => `回车：${value}`,
  bad: (problem) => `答案不符合要求：${problem}，请重新回答。`,
  tooLong: (length, limit) => `这一行有 ${length} 个字符，超过上限 ${limit}，请重新输入。`,
  problem: (problem, given) => {
    switch (problem.code) {
      case "required":
        return "必须回答";
      case "not_asked":
        return "没有问这一项";
      case "type":
        if (problem.expected === "boolean") return `请回答「是」或「否」，而不是 ${got(given)}`;
        if (problem.expected === "whole number") return `应为整数，而不是 ${got(given)}`;
        return `应为${problem.expected === "number" ? "数字" : problem.expected === "text" ? "文字" : "选项列表"}，而不是 ${got(given)}`;
      case "too_short":
        return `至少 ${problem.limit} 个字符`;
      case "too_long":
        return `最多 ${problem.limit} 个字符`;
      case "too_small":
        return `不能小于 ${problem.limit}，而不是 ${got(given)}`;
      case "too_large":
        return `不能大于 ${problem.limit}，而不是 ${got(given)}`;
      case "too_few":
        return `至少选 ${problem.limit} 项`;
      case "too_many":
        return `最多选 ${problem.limit} 项`;
      case "pattern":
        return `应符合 ${cleanText(problem.pattern).slice(0, 200)}`;
      case "format":
        return `应为 ${problem.format} 格式，例如 ${problem.example}`;
      case "choice":
        return `请输入 1 到 ${problem.options.length} 的编号`;
      case "twice":
        return `${got(given)} 重复了`;
    }
  },
  site: (display, punycode) => `站点：${display}${punycode === undefined ? "" : `（${punycode}）`}`,
  mixedScripts: "注意：这个域名混用了不同的文字，可能在冒充别的网站。",
  openPrompt: "在浏览器中打开吗（是/否）> ",
  opened: "已在浏览器中打开。",
  notOpened: (reason) => `无法自动打开（${reason}），请自行打开该地址。`,
  approval: (n, total, tool) => `需要审批 ${n}/${total}：${tool}`,
  arguments: "参数",
  decisions: {
    approve: "approve  批准",
    edit: 'edit     修改参数（或 edit {"参数": 值}）',
    reject: "reject   拒绝（可写原因：reject 原因）",
    respond: "respond  不执行，直接答复（respond 内容）",
  },
  decisionPrompt: "决定> ",
  unknownDecision: (word, allowed) => `没有「${word}」这个决定，请输入：${allowed}`,
  editPrompt: (name, value) => `${name}（当前 ${value}，回车不变）> `,
  badEdit: "参数不正确：JSON，请重新决定。",
  rejected: "审批人拒绝了这次操作",
  responded: "请先与用户确认",
};

const byLanguage = { en, zh };

/** The terminal's own texts in a language, with some of them said otherwise. @throws ConfigError for a text nobody reads */
export function terminalTexts(language: Language = "en", own: Partial<TerminalTexts> = {}): TerminalTexts {
  checkOptions(own, Object.keys(en), "texts");
  return { ...byLanguage[language], ...own };
}
