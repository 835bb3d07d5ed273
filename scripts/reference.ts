// Writes docs/reference: every name that can be imported, from its docstring. `npm run reference`.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Entry, type Export, readSurface } from "./surface.ts";

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), "docs/reference");

/** Up to the first full stop that ends a sentence; `e.g.` ends none. */
export function firstSentence(doc: string): string {
  const text = doc.split("\n\n")[0]?.replace(/\s+/g, " ").trim() ?? "";
  return /^.*?(?<!\b(?:e\.g|i\.e|vs))\.(?= [A-Z`“"]|$)/.exec(text)?.[0] ?? text;
}

const cell = (text: string): string => text.replace(/\s+/g, " ").replaceAll("|", "\\|");

function optionsOf({ name, fields }: Export): string[] {
  const rows = fields.map((field) => `| \`${field.name}\` | ${field.optional ? "" : "yes"} | ${cell(field.doc)} |`);
  return ["", `### ${name}`, "", "| field | required | what it is |", "| --- | --- | --- |", ...rows];
}

function section({ address, exports }: Entry): string {
  const rows = exports.map(({ name, kind, doc }) => `| \`${name}\` | ${kind} | ${cell(firstSentence(doc))} |`);
  const options = exports.filter(({ fields }) => fields.length > 0).flatMap(optionsOf);
  return [`## ${address}`, "", "| name | kind | what it is |", "| --- | --- | --- |", ...rows, ...options].join("\n");
}

/** The pages by their file names: one a package. */
export function referencePages(surface: readonly Entry[]): Map<string, string> {
  const pages = new Map<string, string[]>();
  for (const entry of surface) {
    const file = `${entry.address.split("/")[1]}.md`;
    pages.set(file, [...(pages.get(file) ?? []), section(entry)]);
  }
  return new Map(
    [...pages].map(([file, sections]) => {
      const title = `# @tenon/${file.replace(".md", "")}`;
      const about = "Everything that can be imported, from the docstrings in the sources (`npm run reference`).";
      return [file, `${[title, about, ...sections].join("\n\n")}\n`];
    }),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of referencePages(readSurface())) writeFileSync(join(folder, file), text);
}
