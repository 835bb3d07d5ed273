import type { Field, FieldOption } from "../types/questions.ts";
import { describeProblem, type FieldProblem, type ValueProblem, valueProblem } from "./field-values.ts";

/** A typed value, `undefined` for an entry that is left out, or what is wrong. */
export type FieldInput =
  | { readonly value: string | number | boolean | string[] | undefined }
  | { readonly issue: string; readonly problem: FieldProblem; readonly given?: unknown };

const YES = ["yes", "y", "true", "是", "是的", "对", "好", "确认"];
const NO = ["no", "n", "false", "否", "不", "不是", "不对"];

/** Full-width letters and digits of Chinese input methods count like the others. */
const plain = (text: string): string => text.normalize("NFKC").trim().toLowerCase();

/** An option by its value, its title or its 1-based number; a value wins over a number. */
function findOption(options: readonly FieldOption[], text: string): string | undefined {
  const word = plain(text);
  const exact = options.find((option) => option.value === text || option.title === text);
  const near = options.find((option) => plain(option.value) === word || plain(option.title) === word);
  const numbered = /^\d{1,6}$/.test(word) ? options[Number(word) - 1] : undefined;
  return (exact ?? near ?? numbered)?.value;
}

function wrong(found: ValueProblem): FieldInput {
  const given = found.given === undefined ? {} : { given: found.given };
  return { issue: describeProblem(found), problem: found.problem, ...given };
}

function read(field: Field, text: string): FieldInput {
  switch (field.kind) {
    case "text":
      return { value: text };
    case "number": {
      const digits = plain(text);
      if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(digits)) return { value: Number(digits) };
      const expected = field.integer ? "whole number" : "number";
      return wrong({ problem: { code: "type", expected }, given: text });
    }
    case "boolean": {
      const word = plain(text);
      if (YES.includes(word)) return { value: true };
      if (NO.includes(word)) return { value: false };
      return wrong({ problem: { code: "type", expected: "boolean" }, given: text });
    }
    case "choice": {
      const value = findOption(field.options, text);
      if (value !== undefined) return { value };
      return wrong({ problem: { code: "choice", options: field.options }, given: text });
    }
    case "choices": {
      const whole = findOption(field.options, text);
      if (whole !== undefined) return { value: [whole] }; // a title may hold a comma
      const value: string[] = [];
      for (const part of text.split(/[,，、;；]/).map((item) => item.trim())) {
        if (part === "") continue;
        const option = findOption(field.options, part);
        if (option === undefined) return wrong({ problem: { code: "choice", options: field.options }, given: part });
        value.push(option);
      }
      return { value };
    }
  }
}

/**
 * What a person typed for a field, as its value: numbers from digits, yes/no words in English and Chinese, choices by value,
 * title or number, several separated by commas. Nothing typed means the default, or leaves out an entry that is not required.
 *
 * @example parseFieldText({ kind: "boolean", name: "ok", required: true }, "是") // { value: true }
 */
export function parseFieldText(field: Field, text: string): FieldInput {
  const typed = text.trim();
  if (typed === "") {
    if (field.default !== undefined) {
      return { value: typeof field.default === "object" ? [...field.default] : field.default };
    }
    return field.required ? wrong({ problem: { code: "required" }, given: undefined }) : { value: undefined };
  }
  const input = read(field, typed);
  if ("issue" in input) return input;
  const found = valueProblem(field, input.value);
  return found ? wrong(found) : input;
}
