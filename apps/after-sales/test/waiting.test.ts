import { describe, expect, it } from "vitest";
import { textsFor } from "../src/texts/index.ts";
import { dataDirectory, ENTRY, openChat, Program, refunds } from "./desk.ts";

/** A server of its own, as somebody would run it elsewhere. */
async function serve(
  data: string,
  name: "order" | "notification",
  port = 0,
): Promise<{ url: string; program: Program }> {
  const program = new Program([process.execPath, ENTRY, "serve", name, "--port", String(port), "--data", data]);
  const line = await program.sees(/http:\S+\/mcp\n/);
  return { url: line.slice(line.indexOf("http")).trim(), program };
}

const languages = [
  { lang: "zh", refund: "ORD-001 耳机坏了，请退款", look: "查询订单ORD-002", decide: "决定> ", name: "订单服务" },
  {
    ...{ lang: "en", refund: "ORD-001 the headphones are broken, please refund", look: "Look up order ORD-002" },
    ...{ decide: "decision> ", name: "order service" },
  },
] as const;

describe.each(languages)("a refund that is under way while the order server is down, in $lang", (told) => {
  it("waits, whoever is killed meanwhile, and is made once when the server is back", async () => {
    const { lang, refund, look, decide, name } = told;
    const { chat: texts, offline } = textsFor(lang);
    const data = dataDirectory();
    const notification = await serve(data, "notification");
    const order = await serve(data, "order");
    const args = ["--order-url", order.url, "--notification-url", notification.url, "--lang", lang];
    const open = () => openChat(data, { args });

    const first = open().say(refund);
    await first.sees(decide);
    await first.kill("SIGKILL").ended;
    await order.program.kill("SIGTERM").ended;

    const second = open();
    await second.sees(texts.pending);
    await second.sees(decide);
    second.say("approve");
    await second.sees(texts.waits(name));
    await second.kill("SIGKILL").ended;

    const third = open();
    await third.sees(texts.resumed); // that was approved: nobody is asked again
    await third.sees(texts.waits(name));
    third.say(look);
    await third.sees(texts.waits(name));
    await third.sees(texts.notTaken);
    expect(refunds(data)).toEqual([]);

    await serve(data, "order", Number(new URL(order.url).port));
    third.say(look);
    await third.sees(texts.serverUp(name));
    await third.sees(offline.offerSms); // what waited goes first
    await third.sees("ORD-002");
    third.say("quit");
    expect((await third.ended).code).toBe(0);
    expect(third.stdout).not.toContain("not a valid tool");
    expect(third.stdout).not.toContain(decide);
    expect(refunds(data)).toEqual(["ORD-001"]);
  });
});
