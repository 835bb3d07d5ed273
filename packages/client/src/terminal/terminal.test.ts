import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { parseFields } from "../question/fields.ts";
import { checkQuestionUrl } from "../trust/url.ts";
import type { ElicitationRequest } from "../types/questions.ts";
import {
  type AskInTerminalOptions,
  approveInTerminal,
  askInTerminal,
  openInBrowser,
  openLines,
  terminalTexts,
} from "./index.ts";

const ESC = "\u001b";

function form(
  properties: Record<string, unknown>,
  required: string[] = [],
  message = "Please fill in",
): ElicitationRequest {
  const schema = { type: "object", properties: properties as never, required };
  return { mode: "form", message, fields: parseFields(schema), schema };
}

/** Answers a question with lines from a pipe; what was shown comes back with the answer. */
async function told(request: ElicitationRequest, lines: string[], options: AskInTerminalOptions = {}) {
  const input = new PassThrough();
  const output = new PassThrough();
  input.end(lines.map((line) => `${line}\n`).join(""));
  const answer = await askInTerminal(request, { input, output, server: "orders", ...options });
  return { answer, screen: String(output.read() ?? "") };
}

const size = {
  type: "string",
  title: "Size",
  oneOf: [
    { const: "s", title: "Small" },
    { const: "l", title: "Large" },
  ],
};

describe("a form in the terminal", () => {
  it("is asked entry by entry, with choices by number or value and defaults by Enter", async () => {
    const request = form(
      {
        name: { type: "string", title: "Name", minLength: 2 },
        count: { type: "integer", title: "Count", minimum: 1, default: 3 },
        size,
        tags: { type: "array", title: "Tags", items: { enum: ["red", "green", "blue"] } },
        gift: { type: "boolean", title: "A gift?" },
        note: { type: "string", title: "Note" },
      },
      ["name", "size", "gift"],
    );
    const { answer, screen } = await told(request, ["Ann", "", "2", "red, 3", "y", ""]);
    expect(answer).toEqual({
      action: "accept",
      content: { name: "Ann", count: 3, size: "l", tags: ["red", "blue"], gift: true },
    });
    expect(screen).toContain("┌ orders asks:\n│ Please fill in\n");
    expect(screen).toContain("│   1) Small\n│   2) Large\n");
    expect(screen).toContain("Count (Enter: 3)> ");
    expect(screen).toContain("Note (Enter leaves it out)> ");
  });
  it("shows what a date, a time or an address looks like before it is typed", async () => {
    const due = { value: { type: "string", format: "date" } };
    const { answer, screen } = await told(form(due, ["value"]), ["2026-07-28"]);
    expect(answer).toEqual({ action: "accept", content: { value: "2026-07-28" } });
    expect(screen).toContain("│   such as 2026-07-28\n");
    expect((await told(form(due, ["value"]), ["2026-07-28"], { language: "zh" })).screen).toContain("例如 2026-07-28");
    const note = form({ value: { type: "string", format: "something" } }, ["value"]);
    expect((await told(note, ["x"])).screen).not.toContain("such as");
  });
  it("asks again for what does not fit and says why", async () => {
    const request = form(
      { age: { type: "integer", title: "Age", minimum: 1 }, mail: { type: "string", format: "email" }, size },
      ["age", "mail", "size"],
    );
    const { answer, screen } = await told(request, [
      "old",
      "1.5",
      "0",
      "",
      "7",
      "ann",
      "ann@example.com",
      "",
      "3",
      "s",
    ]);
    expect(answer).toEqual({ action: "accept", content: { age: 7, mail: "ann@example.com", size: "s" } });
    expect(screen.match(/The answer does not fit: .*/g)).toEqual([
      'The answer does not fit: a whole number is expected, not "old". Please answer again.',
      "The answer does not fit: a whole number is expected, not 1.5. Please answer again.",
      "The answer does not fit: at least 1 is expected, not 0. Please answer again.",
      "The answer does not fit: an answer is needed. Please answer again.",
      "The answer does not fit: a valid email is expected, such as ann@example.com. Please answer again.",
      "The answer does not fit: type a number from 1 to 2. Please answer again.",
      'The answer does not fit: type a number from 1 to 2, not "3". Please answer again.',
    ]);
  });
  it("speaks Chinese and understands it", async () => {
    const request = form({ ok: { type: "boolean", title: "确定吗" }, n: { type: "integer" } }, ["ok", "n"]);
    const { answer, screen } = await told(request, ["也许", "是", "十", "１０"], {
      language: "zh",
      server: "订单服务",
    });
    expect(answer).toEqual({ action: "accept", content: { ok: true, n: 10 } });
    expect(screen).toContain("┌ 订单服务 询问：");
    expect(screen).toContain("确定吗 (是/否)> ");
    expect(screen).toContain('答案不符合要求：请回答「是」或「否」，而不是 "也许"，请重新回答。');
    expect(screen).toContain('答案不符合要求：应为整数，而不是 "十"，请重新回答。');
  });
  it("says why it is asked again, where another handler's answer did not fit", async () => {
    const request = form({ n: { type: "integer" } }, ["n"]);
    const again = {
      ...request,
      attempt: 2,
      problems: [
        { field: "n", message: "is required", problem: { code: "required" } },
        { message: "content must\nbe an object" },
      ],
    } as const;
    const { screen } = await told(again, ["3"]);
    expect(screen).toContain(
      `│ ${terminalTexts("en").bad(`n: ${terminalTexts("en").problem({ code: "required" }, undefined)}`)}`,
    );
    expect(screen).toContain("│ be an object"); // inside the frame
  });
  it("can say some of its texts in other words", async () => {
    const { screen } = await told(form({ a: { type: "string" } }), [""], { texts: { leave: "!decline = nein" } });
    expect(screen).toContain("└ !decline = nein\n");
  });
  it.each([
    ["!decline", "decline"],
    ["！拒绝", "decline"],
    ["!cancel", "cancel"],
    ["!取消", "cancel"],
  ])("is left with %s from any entry", async (word, action) => {
    expect((await told(form({ a: { type: "string" }, size }), ["text", word])).answer).toEqual({ action });
    expect((await told(form({ a: { type: "string" } }), [word])).answer).toEqual({ action });
  });
  it("takes decline for an answer where a text is asked for, or an option is called so", async () => {
    expect((await told(form({ a: { type: "string" } }), ["decline"])).answer).toMatchObject({
      content: { a: "decline" },
    });
    const request = form({ a: { type: "string", enum: ["confirm", "cancel"] } }, ["a"]);
    expect((await told(request, ["cancel"])).answer).toMatchObject({ content: { a: "cancel" } });
    expect((await told(request, ["decline"])).answer).toEqual({ action: "decline" });
  });
  it("takes a word that every object knows for an answer that does not fit", async () => {
    const request = form({ n: { type: "integer" } }, ["n"]);
    const { answer } = await told(request, ["constructor", "!toString", "3"]);
    expect(answer).toEqual({ action: "accept", content: { n: 3 } });
    const address = checkQuestionUrl("https://example.com/a", "s", undefined);
    const visit = await told({ mode: "url", message: "Go", ...address }, ["valueOf", "no"], { open: false });
    expect(visit.answer).toEqual({ action: "decline" });
  });
  it("is cancelled when the input ends or the signal fires", async () => {
    expect((await told(form({ a: { type: "integer" } }, ["a"]), ["x"])).answer).toEqual({ action: "cancel" });
    const output = new PassThrough();
    const signal = AbortSignal.timeout(20);
    expect(await askInTerminal(form({}), { input: new PassThrough(), output, signal })).toEqual({ action: "cancel" });
  });
  it("without entries asks for a yes", async () => {
    expect((await told(form({}), ["yes"])).answer).toEqual({ action: "accept", content: {} });
    expect((await told(form({}), ["no"])).answer).toEqual({ action: "decline" });
  });
  it("cannot be used by a server to steer the terminal or to forge a frame", async () => {
    const evil = `Pay${ESC}[2J\n└\nanswer> yes\u202e`;
    const request = form({ a: { type: "string", title: evil, description: evil, enum: [evil, "b"] } }, ["a"], evil);
    const { screen } = await told(request, ["zzz", "2"], { server: evil });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that none of them is written is the point
    expect(screen).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    expect(screen.match(/^└/gm)).toHaveLength(1);
    expect(screen.match(/^answer> /gm)).toBeNull();
  });
  it("keeps an entry named __proto__ an entry", async () => {
    const request = form(JSON.parse('{"__proto__": {"type": "string"}}'), ["__proto__"]);
    const { answer } = await told(request, ["x"]);
    expect(JSON.stringify(answer)).toBe('{"action":"accept","content":{"__proto__":"x"}}');
  });
});

describe("several questions on one input", () => {
  it("are asked one after the other, and no line is lost between them", async () => {
    const input = new PassThrough();
    const output = new PassThrough();
    input.write("1\n2\n3");
    const ask = (n: string) => askInTerminal(form({ [n]: { type: "integer" } }, [n]), { input, output });
    const answers = Promise.all([ask("a"), ask("b"), ask("c")]);
    input.end("0\n");
    expect(await answers).toEqual([
      { action: "accept", content: { a: 1 } },
      { action: "accept", content: { b: 2 } },
      { action: "accept", content: { c: 30 } },
    ]);
  });
  it("leave what is typed ahead to the conversation around them", async () => {
    const input = new PassThrough();
    const output = new PassThrough();
    input.end("yes\nand now something else\n");
    await askInTerminal(form({ ok: { type: "boolean" } }, ["ok"]), { input, output });
    const lines = openLines(input, output, () => {});
    expect(await lines.next("> ", new AbortController().signal)).toBe("and now something else");
    expect(await lines.next("> ", new AbortController().signal)).toBeUndefined();
  });
});

describe("a url question in the terminal", () => {
  const ask = (url: string): ElicitationRequest => ({
    mode: "url",
    message: "Please sign in",
    ...checkQuestionUrl(url, "s", undefined),
  });
  it("is opened after a yes only, once", async () => {
    const opened: string[] = [];
    const open = (url: string) => void opened.push(url);
    const { answer, screen } = await told(ask("https://example.com/login"), ["what?", "yes"], { open });
    expect(answer).toEqual({ action: "accept" });
    expect(opened).toEqual(["https://example.com/login"]);
    expect(screen).toContain("│ Site: example.com\n│ https://example.com/login\n");
    for (const [word, action] of [
      ["no", "decline"],
      ["!decline", "decline"],
      ["cancel", "cancel"],
    ] as const) {
      expect((await told(ask("https://example.com/"), [word], { open })).answer).toEqual({ action });
    }
    expect((await told(ask("https://example.com/"), [], { open })).answer).toEqual({ action: "cancel" });
    expect(opened).toHaveLength(1);
  });
  it("shows an international name decoded beside what goes over the wire, and warns of mixed alphabets", async () => {
    const { screen } = await told(ask("https://p\u0430ypal.com/"), ["no"], { open: false });
    expect(screen).toContain("│ Site: p\u0430ypal.com (xn--pypal-4ve.com)");
    expect(screen).toContain("Careful: this name mixes alphabets");
    expect((await told(ask("https://例子.测试/"), ["否"], { open: false, language: "zh" })).screen).not.toContain(
      "注意",
    );
  });
  it("is still agreed to when nothing can open it, and the person is told", async () => {
    const open = () => Promise.reject(new Error("no display"));
    const { answer, screen } = await told(ask("https://example.com/"), ["yes"], { open });
    expect(answer).toEqual({ action: "accept" });
    expect(screen).toContain("could not be opened (no display)");
  });
  it("is opened by the system's opener as one argument, and only when it is a web page", async () => {
    await expect(openInBrowser("file:///etc/passwd")).rejects.toMatchObject({ code: "unsafe_url" });
    await expect(openInBrowser("https://user:pw@example.com")).rejects.toMatchObject({ code: "unsafe_url" });
  });
  it.skipIf(process.platform !== "linux")(
    "reaches the opener without a shell, and without one it is an error",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "tenon-open-"));
      const path = process.env.PATH;
      try {
        process.env.PATH = folder;
        await expect(openInBrowser("https://example.com/")).rejects.toThrow("xdg-open");
        const record = join(folder, "record");
        const script = `#!${process.execPath}\nrequire("node:fs").writeFileSync(${JSON.stringify(record)}, JSON.stringify(process.argv.slice(2)))`;
        // what a file without an ending is depends on the nearest one
        await writeFile(join(folder, "package.json"), '{"type":"commonjs"}');
        await writeFile(join(folder, "xdg-open"), script, { mode: 0o755 });
        await openInBrowser("https://example.com/?a=$(id)&b=`id`;c 'd'");
        const argv = await vi.waitFor(async () => JSON.parse(await readFile(record, "utf8")), { timeout: 10_000 });
        expect(argv).toEqual(["https://example.com/?a=$(id)&b=`id`;c%20%27d%27"]);
      } finally {
        process.env.PATH = path;
        await rm(folder, { recursive: true });
      }
    },
  );
});

describe("an approval in the terminal", () => {
  const action = {
    name: "mcp_order_refund",
    tool: "refund",
    description: "Refund it?",
    args: { id: "ORD-001", amount: 5, caller: "me" },
    schema: { properties: { id: { type: "string" }, amount: { type: "integer" } } },
    decisions: ["approve", "edit", "reject", "respond"] as const,
  };
  async function decided(
    lines: string[],
    decisions: readonly ("approve" | "edit" | "reject" | "respond")[] = action.decisions,
  ) {
    const input = new PassThrough();
    const output = new PassThrough();
    input.end(lines.map((line) => `${line}\n`).join(""));
    const asking = {
      lines: openLines(input, output, () => {}),
      texts: terminalTexts(),
      signal: new AbortController().signal,
    };
    const decision = await approveInTerminal({ ...action, decisions }, asking, { fixed: ["caller"] });
    return { decision, screen: String(output.read() ?? "") };
  }
  it.each([
    [["maybe", "approve"], { type: "approve" }],
    [["同意"], { type: "approve" }],
    [["reject: too much"], { type: "reject", message: "too much" }],
    [["reject"], { type: "reject", message: "the reviewer rejected the action" }],
    [["respond ask first"], { type: "respond", message: "ask first" }],
    [
      ['edit {"amount": 7}'],
      { type: "edit", editedAction: { name: action.name, args: { ...action.args, amount: 7 } } },
    ],
    [["edit", "007", ""], { type: "edit", editedAction: { name: action.name, args: { ...action.args, id: "007" } } }],
    [["edit {broken", "approve"], { type: "approve" }],
    [[], undefined],
  ])("reads %j", async (lines, decision) => {
    expect((await decided(lines)).decision).toEqual(decision);
  });
  it("offers only what may be decided", async () => {
    const { decision, screen } = await decided(['edit {"amount": 7}', "reject"], ["approve", "reject"]);
    expect(decision).toMatchObject({ type: "reject" });
    expect(screen).toContain('"edit" is not a decision here; type one of: approve / reject');
  });
});
