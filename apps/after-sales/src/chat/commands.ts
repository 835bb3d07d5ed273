import { cleanText as clean } from "@tenon/core";
import { attach, attachmentsIn } from "../agent/attachments.ts";
import type { Desk } from "../agent/desk.ts";
import type { AuditLine } from "../agent/interceptors.ts";
import type { ServerName } from "../servers/names.ts";
import type { Texts } from "../texts/index.ts";

/** What a line means: something to say to the agent, something that was done already, or the wish to leave. */
export type Spoken = { message: string } | { done: string } | { quit: true };

const QUIT = new Set(["quit", "exit", "q", "退出", "/quit", "/exit"]);

/** Whether a line says that the person wants to leave. */
function isQuit(line: string): boolean {
  return QUIT.has(line.trim().toLowerCase());
}

/** `order_id=ORD-001 amount="299.00"` → its parts. */
function parsePairs(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([\w-]+)=("([^"]*)"|\S+)/g)].map(([, key, value, quoted]) => [key, quoted ?? value]),
  );
}

async function withAttachments(desk: Desk, message: string, t: Texts, write: (text: string) => void): Promise<string> {
  let text = message;
  for (const uri of attachmentsIn(message)) {
    const content = await desk.readResource(uri);
    if (content === undefined) {
      write(`  ${t.chat.noResource(clean(uri))}\n`);
      continue;
    }
    text = attach(text, uri, content);
    write(`  ${t.chat.attached(clean(uri))}\n`);
  }
  return text;
}

/** Reads a line as a command, a server's prompt or a message. `audit` gives the thread's audit lines. */
export async function interpret(
  line: string,
  desk: Desk,
  t: Texts,
  context: {
    write(text: string): void;
    audit(): Promise<readonly AuditLine[]>;
    showAudit(lines: readonly AuditLine[]): void;
    serverTitle(server: string): string;
  },
): Promise<Spoken> {
  const text = line.trim();
  if (isQuit(text)) return { quit: true };
  const [, name, rest = ""] = /^\/([\w-]+)\s*(.*)$/s.exec(text) ?? [];
  if (name === undefined || name === "tool") return { message: await withAttachments(desk, text, t, context.write) };
  switch (name) {
    case "help":
      return { done: t.chat.help };
    case "tools": {
      const tools = await desk.tools();
      return {
        done: tools.map((tool) => `  ${clean(tool.name)}  ${clean(tool.description)}`).join("\n") || t.chat.none,
      };
    }
    case "prompts": {
      const prompts = await desk.prompts();
      return {
        done:
          prompts.map((prompt) => `  /${clean(prompt.name)}  ${clean(prompt.description ?? "")}`).join("\n") ||
          t.chat.none,
      };
    }
    case "status":
      return {
        done: desk
          .servers()
          .map((info) => {
            const gap = desk.gaps().get(info.server as ServerName); // the client knows no others
            const why = gap === undefined || gap.kind === "down" ? info.error?.message : gap.text;
            return `  ${context.serverTitle(info.server)}: ${info.health} ${info.era ?? ""} ${clean(why ?? "")}`.trimEnd();
          })
          .join("\n"),
      };
    case "audit": {
      context.showAudit(await context.audit());
      return { done: "" };
    }
  }
  const prompt = (await desk.prompts()).find((one) => one.name === name);
  if (!prompt) return { done: t.chat.unknownCommand(name) };
  const given = parsePairs(rest);
  const missing = prompt.arguments.filter((argument) => argument.required && given[argument.name] === undefined);
  if (missing.length > 0) {
    return {
      done: t.chat.promptUsage(name, prompt.arguments.map((argument) => `${clean(argument.name)}=…`).join(" ")),
    };
  }
  return { message: await desk.renderPrompt(prompt, given) };
}
