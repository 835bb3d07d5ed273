import { createClient, type ElicitationAnswer, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

const answers: ElicitationAnswer[] = [];
const messages: string[] = [];
const problems: string[] = [];
/** What the person types on a page before they say that they are done; undefined: they did not go there. */
let typed: (string | undefined)[] = [];
async function visit(url: string): Promise<void> {
  const pin = typed.shift();
  if (pin === undefined) return;
  const page = await fetch(url);
  if (!(await page.text()).includes('type="password"')) throw new Error("the page has no field for a secret");
  await fetch(url, { method: "POST", body: new URLSearchParams({ pin }) });
}
await using client = createClient({
  servers: { profiles: child(import.meta) },
  elicitation: async (question, { server }) => {
    messages.push(question.message);
    problems.push((question.problems ?? []).map(({ field, message }) => `${field}: ${message}`).join("; "));
    console.log(`${server} asks: ${question.message}`, ...problems.slice(-1));
    if (question.mode === "url") await visit(question.url);
    return answers.shift() ?? { action: "cancel" };
  },
});
/** Creates a profile while the person gives these answers, one after the other. */
async function create(...given: ElicitationAnswer[]): Promise<unknown> {
  answers.splice(0, answers.length, ...given);
  messages.length = 0;
  problems.length = 0;
  const { content, structured } = await client.callTool("profiles", "create_profile", { name: "张三" });
  return structured ?? renderText(content);
}
const good: ElicitationAnswer = { action: "accept", content: { email: "user@example.com", age: 25 } };

check("accepted: the full profile", await create(good), { name: "张三", email: "user@example.com", age: 25 });
check("declined: the minimal profile", await create({ action: "decline" }), { name: "张三" });
check("cancelled: no profile", await create({ action: "cancel" }), /No profile was created/);

const wrong: ElicitationAnswer = { action: "accept", content: { email: "not an address", age: "old" } };
check("wrong types are asked again", await create(wrong, good), { name: "张三", email: "user@example.com", age: 25 });
check("and the person reads what was wrong", problems[1], /email.*age/);

/** Sets a PIN; for each time the person is sent to the page, what they type there. */
async function setPin(given: ElicitationAnswer[], ...onPage: (string | undefined)[]): Promise<unknown> {
  answers.splice(0, answers.length, ...given);
  typed = onPage;
  messages.length = 0;
  const result = await client.callTool("profiles", "set_pin", { name: "张三" });
  check("the PIN itself is in nothing the client received", JSON.stringify([result, messages]).includes("4711"), false);
  return result.structured ?? renderText(result.content);
}
const done: ElicitationAnswer = { action: "accept" };
const set = { name: "张三", pin: "set", digits: 6 };

check("a secret is typed on the server's own page", await setPin([done], "471108"), set);
check("who says done without having been there is asked again", await setPin([done, done], undefined, "471108"), set);
check("and so is who typed something wrong", await setPin([done, done], "four", "471108"), set);
check("each time with the same question", messages, ["Set a PIN for 张三", "Set a PIN for 张三"]);
check("declined: no PIN", await setPin([{ action: "decline" }]), /has no PIN/);
