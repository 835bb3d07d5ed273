// Makes the pictures of the READMEs from a real run of the chat: `npm run picture`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const FONT = 13;
const LINE = 19;
const COLUMNS = 118;
const PAD = 18;
const BAR = 34;

const sessions = {
  en: {
    file: "docs/images/session.svg",
    lines: [
      "ORD-003 the monitor screen is broken, please refund",
      "approve",
      "1",
      "Refund ORD-002 and ORD-004, quality problem",
      "quit",
    ],
  },
  zh: {
    file: "docs/images/session.zh-CN.svg",
    lines: ["ORD-003 显示器屏幕坏了，需要退款", "approve", "1", "ORD-002、ORD-004 由于产品质量问题，请退款", "quit"],
  },
};

/** Columns a character takes: CJK and full-width forms take two. */
const width = (char) => (/[\u1100-\u115f\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/.test(char) ? 2 : 1);

/** Breaks a long line at a space where it has one, and indents what follows. */
function wrap(line) {
  const lines = [];
  let rest = line;
  while (rest) {
    let used = 0;
    let end = 0;
    let space = 0;
    for (const char of rest) {
      used += width(char);
      if (used > COLUMNS) break;
      end += char.length;
      if (char === " ") space = end;
    }
    const cut = end < rest.length && space > end / 2 ? space : end;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(cut) && `    ${rest.slice(cut)}`;
  }
  return lines.length > 0 ? lines : [""];
}

function colour(line) {
  if (/^(you|你|decision|决定|answer|回答)> /.test(line)) return "#7ee787";
  if (/^[┌│└]/.test(line)) return "#f2cc60";
  if (/^ {2}(审计|audit)/.test(line)) return "#8b949e";
  if (/^ {2}\[|^ {2}(进度|progress)/.test(line)) return "#79c0ff";
  if (/^ {2}·/.test(line)) return "#d2a8ff";
  return "#e6edf3";
}

const escapeXml = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

for (const [lang, { file, lines }] of Object.entries(sessions)) {
  const data = mkdtempSync(join(tmpdir(), "tenon-picture-"));
  const { stdout, status } = spawnSync(
    process.execPath,
    ["apps/after-sales/dist/main.js", "chat", "--all", "--data", data, "--lang", lang],
    {
      cwd: root,
      input: `${lines.join("\n")}\n`,
      encoding: "utf8",
    },
  );
  rmSync(data, { recursive: true, force: true });
  if (status !== 0) throw new Error(`the session ended with ${status}`);
  const shown = stdout
    .split("\n")
    // from the first message to the last answer
    .slice(stdout.split("\n").findIndex((line) => line.includes(lines[0])))
    .join("\n")
    .split(/\n\n\S+> quit/)[0]
    .split("\n")
    .flatMap((line) => wrap(line).map((part) => ({ part, fill: colour(line) })));
  const w = PAD * 2 + Math.ceil(COLUMNS * FONT * 0.602);
  const h = BAR + PAD + shown.length * LINE;
  const text = shown
    .map(({ part, fill }, i) => `<text x="${PAD}" y="${BAR + PAD + i * LINE}" fill="${fill}">${escapeXml(part)}</text>`)
    .join("\n");
  const dots = ["#ff5f57", "#febc2e", "#28c840"]
    .map((fill, i) => `<circle cx="${PAD + 6 + i * 20}" cy="17" r="6" fill="${fill}"/>`)
    .join("");
  writeFileSync(
    join(root, file),
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" role="img" aria-label="A session of the after-sales desk in a terminal">
<rect width="${w}" height="${h}" rx="10" fill="#0d1117"/>
${dots}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'Noto Sans Mono CJK SC', monospace" font-size="${FONT}" xml:space="preserve" style="white-space:pre">
${text}
</g>
</svg>
`,
  );
  console.log(file);
}
