import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** A block of code on a page, and what its marker says. */
export interface Block {
  readonly name: string;
  readonly text: string;
}

/** Blocks of a page that stand below a marker such as `<!-- file: path -->`. */
export function marked(page: string, kind: string): Block[] {
  return [...read(page).matchAll(new RegExp(`<!-- ${kind}: (.+?) -->\n+\`\`\`\\w*\n([\\s\\S]*?)\`\`\``, "g"))].map(
    ([, name = "", text = ""]) => ({ name, text }),
  );
}

/** What a block with this marker must show: a file, or with `path#name` what stands between `#region name` and `#endregion`. */
export function source(name: string): string {
  const [path = "", region] = name.split("#");
  const text = read(path);
  if (region === undefined) return text;
  const found = new RegExp(`// #region ${region}\n([\\s\\S]*?)\n*// #endregion`).exec(text);
  if (!found?.[1]) throw new Error(`${path} has no region "${region}"`);
  return `${found[1].trimEnd()}\n`;
}
