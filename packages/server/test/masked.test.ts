// Whatever a handler throws: its caller reads a reference, and the log says what was thrown under it.
import { afterEach, describe, expect, it } from "vitest";
import { createServer, type LogEntry } from "../src/index.ts";
import { ask, call, said } from "./ask.ts";

const SECRET = "postgres://me:hunter2@db";
const unprintable = {
  toString() {
    throw new Error(SECRET);
  },
};
let lines: LogEntry[] = [];
const server = createServer({ name: "rude", version: "1.0.0", logSink: (line) => lines.push(line) });
const thrown: [string, unknown, string][] = [
  ["a text", SECRET, "postgres://[redacted]@db"], // the log has no password either,
  ["undefined", undefined, "undefined"],
  ["null", null, "null"],
  ["a number", 42, "42"],
  ["a symbol", Symbol("hunter2"), "Symbol(hunter2)"],
  ["an object", { message: SECRET, code: "x" }, "[object Object]"],
  ["an object without a text of its own", unprintable, "a thrown object without a text of its own"],
  ["an object without a prototype", Object.create(null), "a thrown object without a text of its own"],
];
for (const [name, what] of thrown) {
  const fail = () => {
    throw what;
  };
  const slug = name.replaceAll(" ", "-");
  server.tool(slug, {}, fail).tool(`${slug}-later`, {}, async () => fail());
  server.tool(`${slug}-step`, {}, (_, ctx) => ctx.step("s", fail)).resource(`x://${slug}`, {}, fail);
}
afterEach(() => {
  lines = [];
});

describe.each(thrown)("a handler that throws %s", (name, _, logged) => {
  const slug = name.replaceAll(" ", "-");
  it.each(["", "-later", "-step"])("is masked under a reference that the log has, called as %j", async (way) => {
    const answer = await call(server, `${slug}${way}`);
    const [, reference] = /^Tool .* failed \(reference ([2-9A-Z]{6})\)$/.exec(said(answer)) ?? [];
    expect(reference).toBeDefined();
    expect(answer.result?.isError).toBe(true);
    expect(JSON.stringify(answer)).not.toContain("hunter2");
    expect(lines).toEqual([expect.objectContaining({ level: "error", reference })]);
    expect(lines[0]?.error).toMatchObject({ message: logged, code: "unexpected" });
  });
  it("is masked for a resource too", async () => {
    const { error } = await ask(server, "resources/read", { uri: `x://${slug}` });
    expect(error).toMatchObject({ code: -32_603, message: expect.stringMatching(/failed \(reference [2-9A-Z]{6}\)$/) });
    expect(lines[0]?.error).toMatchObject({ message: logged });
  });
});
