/** What it takes to ask a person in a form of your own: its entries, what they typed, what is wrong with it. */
export { type FieldInput, parseFieldText } from "./field-text.ts";
export { checkAnswer, type FieldIssue } from "./field-values.ts";
export { parseFields } from "./fields.ts";
