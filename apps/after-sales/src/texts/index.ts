import { en } from "./en.ts";
import { zh } from "./zh.ts";

export type Lang = "zh" | "en";
/** Every text a person reads, by place of use. */
export type Texts = typeof zh;

const byLang: Record<Lang, Texts> = { zh, en };

/** The texts for a language tag such as `en`, `en-GB` or `zh-CN,zh;q=0.9`; Chinese for anything else. */
export function textsFor(tag: string | null | undefined): Texts {
  return byLang[tag?.toLowerCase().startsWith("en") ? "en" : "zh"];
}

/** Fen as yuan with two decimals: 29900 → `299.00`. */
export function yuan(fen: number): string {
  return `${Math.trunc(fen / 100)}.${String(fen % 100).padStart(2, "0")}`;
}
