import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

it("every code of an error that the client makes stands in the README", () => {
  const source = import.meta.dirname;
  const readme = readFileSync(join(source, "../README.md"), "utf8");
  const named = new Set<string>();
  for (const file of readdirSync(source, { recursive: true, encoding: "utf8" })) {
    // what is wrong with a field of a form has codes of its own, which are no errors
    if (!file.endsWith(".ts") || /\.test\.ts$|^question\/field|^terminal/.test(file)) continue;
    const text = readFileSync(join(source, file), "utf8");
    const codes = /\b(?:code(?: =|:)|fail\(|refuse\(|authError\(\s*[\w.#]+,)\s*"([a-z_]+)"/g;
    for (const [, code = ""] of text.matchAll(codes)) named.add(code);
  }
  expect(named.size).toBeGreaterThan(40);
  expect([...named].filter((code) => !readme.includes(`\`${code}\``))).toEqual([]);
});
