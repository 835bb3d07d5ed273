import { createClient, type ElicitationAnswer, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

const answers: ElicitationAnswer[] = [];
const messages: string[] = [];
await using client = createClient({
  servers: { profiles: child(import.meta) },
  elicitation: ({ message }, { server }) => {
    messages.push(message);
    console.log(`${server} asks: ${message}`);
    return answers.shift() ?? { action: "cancel" };
  },
});
/** Creates a profile while the person gives these answers, one after the other. */
async function create(...given: ElicitationAnswer[]): Promise<unknown> {
  answers.splice(0, answers.length, ...given);
  messages.length = 0;
  const { content, structured } = await client.callTool("profiles", "create_profile", { name: "张三" });
  return structured ?? renderText(content);
}
const good: ElicitationAnswer = { action: "accept", content: { email: "user@example.com", age: 25 } };

check("accepted: the full profile", await create(good), { name: "张三", email: "user@example.com", age: 25 });
check("declined: the minimal profile", await create({ action: "decline" }), { name: "张三" });
check("cancelled: no profile", await create({ action: "cancel" }), /No profile was created/);

const wrong: ElicitationAnswer = { action: "accept", content: { email: "not an address", age: "old" } };
check("wrong types are asked again", await create(wrong, good), { name: "张三", email: "user@example.com", age: 25 });
check("and the person reads what was wrong", messages[1], /email.*age/s);
