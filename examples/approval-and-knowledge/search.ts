/** Full-text search over a folder of Markdown, with SQLite's FTS5. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";

/** An article that was found. */
export interface Hit {
  readonly name: string;
  readonly title: string;
  /** The words around what was found, with the hits in 【 】. */
  readonly snippet: string;
}

/** The articles of a folder, ready to be searched. */
export interface Articles {
  readonly names: readonly string[];
  /** The whole text; undefined when there is no such article. */
  read(name: string): string | undefined;
  /** Best first. */
  search(query: string, limit: number): Hit[];
}

const HAN = /\p{Script=Han}/gu;
/** No width: it parts two characters for the index, and a snippet without it is the text as it was. */
const APART = "\u200b";
/** Terms of one query; more make it slow and find nothing better. */
const MAX_TERMS = 40;

/** SQLite takes words for what lies between spaces; Chinese has none, so each of its characters becomes a word. */
const parted = (text: string): string => text.replace(HAN, `${APART}$&${APART}`);
const together = (text: string): string => text.replaceAll(APART, "");

/** What to look for: each word, and of Chinese each two characters that stand beside each other. Any of them is a hit. */
function terms(query: string): string {
  const runs = query.match(/\p{Script=Han}+|(?:(?!\p{Script=Han})[\p{L}\p{N}])+/gu) ?? [];
  const found = runs.flatMap((run) => {
    const characters = [...run];
    if (!run.match(HAN) || characters.length === 1) return [run];
    return characters.slice(1).map((character, i) => `${characters[i]} ${character}`);
  });
  return [...new Set(found)]
    .slice(0, MAX_TERMS)
    .map((term) => `"${term}"`) // a phrase, whatever is in it
    .join(" OR ");
}

/** Reads the articles of a folder and indexes them in memory. */
export function openArticles(folder: string): Articles {
  const files = readdirSync(folder).filter((file) => file.endsWith(".md"));
  const texts = new Map(files.map((file) => [file.slice(0, -3), readFileSync(join(folder, file), "utf8")]));
  const db = new Database(":memory:");
  db.exec("create virtual table articles using fts5 (name unindexed, title, body, tokenize = 'porter unicode61')");
  const insert = db.prepare("insert into articles values (?, ?, ?)");
  for (const [name, text] of texts) {
    const [heading = "", ...body] = text.split("\n");
    insert.run(name, parted(heading.replace(/^# /, "")), parted(body.join(" ").replace(/\s+/g, " ").trim()));
  }
  // a word in the title counts five times as much
  const select = db.prepare<[string, number], Hit>(
    `select name, title, snippet(articles, 2, '【', '】', '…', 24) as snippet from articles
     where articles match ? order by bm25(articles, 0, 5, 1), name limit ?`,
  );
  return {
    names: [...texts.keys()],
    read: (name) => texts.get(name),
    search(query, limit) {
      const wanted = terms(query);
      const hits = wanted === "" ? [] : select.all(wanted, limit);
      return hits.map(({ name, title, snippet }) => ({ name, title: together(title), snippet: together(snippet) }));
    },
  };
}
