import type { CatalogPrompt } from "@tenon/client";
import { describe, expect, it } from "vitest";
import type { Desk } from "../agent/desk.ts";
import { textsFor } from "../texts/index.ts";
import { interpret } from "./commands.ts";

const t = textsFor("en");

/** A desk whose servers offer one prompt; its text comes back with the arguments it was given. */
const desk: Pick<Desk, "prompts" | "renderPrompt" | "readResource"> = {
  prompts: async () => [
    {
      server: "s",
      name: "reply",
      arguments: [
        { name: "order_id", required: true },
        { name: "note", required: false },
      ],
    } satisfies CatalogPrompt,
  ],
  renderPrompt: async (prompt, args) => `${prompt.name} ${JSON.stringify(args)}`,
  readResource: async (uri) => (uri.startsWith("known:") ? "its text" : undefined),
};

async function read(line: string): Promise<{ spoken: unknown; written: string }> {
  let written = "";
  const spoken = await interpret(line, desk as Desk, t, {
    write: (text) => {
      written += text;
    },
    audit: async () => [],
    showAudit: () => undefined,
    serverTitle: (server) => server,
  });
  return { spoken, written };
}

describe("a line at the prompt", () => {
  it.each(["quit", "exit", "q", "Q", "退出", "/quit", "/exit", "  QUIT  "])("%s leaves", async (line) => {
    expect((await read(line)).spoken).toEqual({ quit: true });
  });

  it.each(["quit now", "q1", "please exit", "退出登录怎么办", "/ tools", "1/2"])("%s is a message", async (line) => {
    expect((await read(line)).spoken).toEqual({ message: line });
  });

  it("uses a prompt with its arguments, quoted or not", async () => {
    expect((await read('/reply order_id=ORD-001 note="two words"')).spoken).toEqual({
      message: 'reply {"order_id":"ORD-001","note":"two words"}',
    });
    expect((await read('/reply order_id="" ')).spoken).toEqual({ message: 'reply {"order_id":""}' });
  });

  it("says which arguments a prompt takes when a required one is missing", async () => {
    expect((await read("/reply note=x")).spoken).toEqual({ done: "Usage: /reply order_id=… note=…" });
  });

  it("attaches the resources that exist, and says of the others that they do not", async () => {
    const { spoken, written } = await read("look at @known://a and @none://b please");
    expect(spoken).toEqual({ message: "look at @known://a and @none://b please\n\n---\n@known://a\nits text" });
    expect(written).toContain("Attached resource known://a");
    expect(written).toContain("There is no resource none://b");
  });

  it("does not take an address with @ in a word for an attachment", async () => {
    expect(await read("write to me@known://a")).toEqual({ spoken: { message: "write to me@known://a" }, written: "" });
  });
});
