import { describe, expect, it } from "vitest";
import { cleanText, shownValue, visibleText } from "./text.ts";

const ESC = "\u001b";

describe("text from elsewhere", () => {
  it.each([
    [`a${ESC}[31mred${ESC}[0m`, "ared"],
    [`${ESC}]0;title\u0007x`, "x"],
    [`${ESC}]8;;https://evil.example${ESC}\\link${ESC}]8;;${ESC}\\`, "link"],
    [`${ESC}[2J${ESC}[1;1Hx${ESC}c`, "x"],
    ["\u009b31mx", "x"],
    ["line\r\nline\tend\rover", "line\nline\tendover"],
    ["pay\u202egnp.exe\u2066\u200b\u200f", "paygnp.exe"],
    ["a\u{e0041}\u{e0042}", "a"],
    ["北京 👨‍👩‍👧 é", "北京 👨‍👩‍👧 é"],
    [`${ESC}]unterminated`, "unterminated"],
    ["\ud800x", "\ufffdx"],
  ])("%j cannot steer a terminal", (text, clean) => {
    expect(cleanText(text)).toBe(clean);
  });
  it("is cleaned in time that grows with its length only", () => {
    expect(cleanText(`${ESC}]`.repeat(200_000)).length).toBeLessThanOrEqual(200_000);
    expect(cleanText(`${ESC}[`.repeat(200_000)).length).toBeLessThanOrEqual(200_000);
  });
  it("shows a reviewer what is hidden in it", () => {
    expect(visibleText("a\u200bb\u202ec\u{e0041}\u0007\nd")).toBe("a\\u{200b}b\\u{202e}c\\u{e0041}\\u{7}\nd");
  });
  it("is cut inside a message", () => {
    expect(shownValue("x".repeat(100), 10)).toBe('"xxxxxxxx…');
    expect(shownValue({ a: "\u200b" })).toBe('{"a":"\\u{200b}"}');
    expect(shownValue(undefined)).toBe("undefined");
  });
});
