import { isRecord } from "@tenon/core";
import { visibleText } from "@tenon/core/internal";
import { expectList } from "../expect.ts";
import { definitionOf, type TrustedTool } from "./definition.ts";

/** Something in a tool's definition that a person should read before accepting it. A mark, not a verdict. */
export interface ToolFinding {
  readonly server: string;
  readonly tool: string;
  readonly kind: "instructions" | "hidden characters" | "other tool";
  /** Where it stands, for example `inputSchema.properties.to.description`. */
  readonly where: string;
  /** The text around it, hidden characters written out. */
  readonly excerpt: string;
}

/** Wording that speaks to a model instead of describing the tool, in English and Chinese. */
const INSTRUCTIONS: readonly RegExp[] = [
  /\b(?:ignore|disregard|forget|override) (?:all |any |the |your )*(?:previous|prior|above|earlier|other|safety|system)/i,
  /\b(?:do not|don't|never|without) (?:tell|inform|mention|show|reveal|notify|ask|telling|informing|asking|mentioning|showing)\b[^.\n]{0,60}\b(?:user|human|person|anyone|them)\b/i,
  /<\s*\/?\s*(?:important|system|secret|instructions?|admin|critical|hidden)\s*>/i,
  /\b(?:system prompt|developer message|hidden instructions?)\b/i,
  /\b(?:before|after|when(?:ever)?|prior to) (?:using|calling|invoking|you (?:use|call)|any (?:other )?(?:tool|call))[^.\n]{0,80}\b(?:must|read|call|send|use|first|pass|include)\b/i,
  /\b(?:you|assistant|the model|ai) (?:must|should always|shall|are required to|have to)\b/i,
  /\b(?:must|always) (?:first )?(?:call|invoke|read|send|forward|include|append|pass) [^.\n]{0,80}\b(?:first|tool|file|content|conversation|history|credentials?|keys?|tokens?)\b/i,
  /(?:~\/\.|\.ssh\b|id_rsa|\.env\b|\.aws\b|\/etc\/(?:passwd|shadow)|mcp\.json)/i,
  /(?:忽略|无视|忘记)(?:之前|以上|先前|此前|所有|其他|系统)/,
  /(?:不要|不得|切勿|禁止|别)(?:告诉|告知|透露|提及|通知|询问|显示)[^。\n]{0,20}(?:用户|任何人|对方)/,
  /(?:你|助手|模型)(?:必须|务必|应当始终|一定要)/,
  /(?:使用|调用)(?:本|此|任何|其他)?工具(?:之)?前[^。\n]{0,20}(?:必须|先|务必)/,
  /系统提示词?/,
];

const MAX_TEXTS = 2_000;
const MAX_LENGTH = 20_000;
const AROUND = 40;

/** Every text of a definition with its place, keys of schemas included: a model reads those too. */
function textsOf(value: unknown, path: string, found: [string, string][] = []): [string, string][] {
  if (found.length >= MAX_TEXTS) return found;
  if (typeof value === "string") found.push([path, value.slice(0, MAX_LENGTH)]);
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) textsOf(item, `${path}[${index}]`, found);
  } else if (isRecord(value)) {
    for (const [key, item] of Object.entries(value)) {
      const place = path === "" ? key : `${path}.${key}`;
      if (visibleText(key) !== key) found.push([place, key]);
      textsOf(item, place, found);
    }
  }
  return found;
}

/** Characters nobody sees; those that join and colour emoji, and the layout of a text, are not among them. */
function hiddenAt(text: string): number {
  const known = text.replace(/\p{Extended_Pictographic}[\ufe0e\ufe0f\u200d]+|[\t\r]/gu, (part) =>
    "x".repeat(part.length),
  );
  const shown = visibleText(known);
  if (shown === known) return -1;
  for (let i = 0; i < known.length; i++) if (shown[i] !== known[i]) return i;
  return known.length - 1;
}

function excerpt(text: string, at: number, length: number): string {
  const from = Math.max(0, at - AROUND);
  const to = Math.min(text.length, at + length + AROUND);
  const part = visibleText(text.slice(from, to)).replaceAll("\n", " ");
  return `${from > 0 ? "…" : ""}${part}${to < text.length ? "…" : ""}`;
}

/** A name that is no everyday word, so that finding it in a text means the tool: `send_mail`, `readFile`. */
const telling = (name: string): boolean => name.length > 3 && (/[_\-./]/.test(name) || /[a-z][A-Z]/.test(name));

/** Where a text names a tool: as a word of its own, or any name in backticks or quotes. */
function namedAt(text: string, name: string): number {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const before = text[at - 1] ?? " ";
    const after = text[at + name.length] ?? " ";
    const quoted = "`'\"“「".includes(before) && "`'\"”」".includes(after);
    if (quoted || (telling(name) && !/[\p{L}\p{N}_-]/u.test(before) && !/[\p{L}\p{N}_-]/u.test(after))) return at;
  }
  return -1;
}

/**
 * Marks what a person should read before accepting tools: wording that instructs the model, characters nobody sees
 * (zero-width, direction marks, tags), and names of other tools. Give it the tools of all servers at once, so that one that
 * talks about another server's tool is found.
 */
export function reviewTools(tools: readonly TrustedTool[]): ToolFinding[] {
  expectList(tools, "reviewTools(tools): tools");
  const findings: ToolFinding[] = [];
  for (const tool of tools) {
    const { name, ...rest } = definitionOf(tool);
    const add = (kind: ToolFinding["kind"], where: string, text: string, at: number, length: number) =>
      findings.push({ server: tool.server, tool: tool.wireName, kind, where, excerpt: excerpt(text, at, length) });
    for (const [where, text] of [["name", name] as const, ...textsOf(rest, "")]) {
      const hidden = hiddenAt(text);
      if (hidden >= 0) add("hidden characters", where, text, hidden, 1);
      for (const pattern of INSTRUCTIONS) {
        const match = pattern.exec(text);
        if (!match) continue;
        add("instructions", where, text, match.index, match[0].length);
        break;
      }
      if (where === "name") continue;
      const other = tools.find(({ server, wireName }) => {
        const itself = server === tool.server && wireName === tool.wireName;
        return !itself && wireName !== tool.wireName && namedAt(text, wireName) >= 0;
      });
      if (other) add("other tool", where, text, namedAt(text, other.wireName), other.wireName.length);
    }
  }
  return findings;
}
