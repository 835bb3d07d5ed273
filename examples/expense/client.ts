import { createClient, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { type Front, front, type Seen } from "../lib/front.ts";
import server from "./server.ts";

type Message = Record<string, unknown>;
const part = (value: unknown): Message => (value ?? {}) as Message; // messages of JSON-RPC are objects all the way down

/** One message on one line, long strings cut. */
function show({ direction, message }: Seen): void {
  const text = JSON.stringify(message, (_, value) =>
    typeof value === "string" && value.length > 60 ? `${value.slice(0, 24)}… (${value.length})` : value,
  );
  console.log(`  ${direction} ${text.length > 600 ? `${text.slice(0, 600)}…` : text}`);
}

/** Submits three expenses in one era; what came back, and what went over the wire for the approved one. */
async function submit(era: "modern" | "legacy"): Promise<{ texts: string[]; wire: Seen[]; asked: string[] }> {
  const at: Front = await front(server, era);
  const asked: string[] = [];
  const client = createClient({
    servers: { expenses: { url: at.url } },
    elicitation: ({ message }) => {
      asked.push(message);
      return { action: "accept", content: { approve: message.includes("travel") } };
    },
  });
  const call = async (amount: number, purpose: string): Promise<string> =>
    renderText((await client.callTool("expenses", "submit_expense", { amount, purpose })).content);
  const texts = [await call(80, "tea")];
  const before = at.seen.length;
  texts.push(await call(2499, "travel"));
  const wire = at.seen.slice(before).filter(({ message }) => message.method !== "ping");
  texts.push(await call(5000, "a party"));
  check(`${era}: the era that was spoken`, client.servers()[0]?.era, era);
  await client.close();
  at.close();
  console.log(`\n${era}, one approved expense on the wire:`);
  wire.forEach(show);
  return { texts, wire, asked };
}

const modern = await submit("modern");
const [ask, required, retry, complete] = modern.wire.map(({ message }) => message);
check("modern: four messages", modern.wire.map(({ direction }) => direction).join(" "), "→ ← → ←");
check("modern: the first answer is a question", part(required?.result).resultType, "input_required");
check("modern: under its key", Object.keys(part(part(required?.result).inputRequests)), ["confirm_amount"]);
const state = String(part(required?.result).requestState);
check("modern: the state is sealed", [state.split(".").length, /travel|2499/.test(state)], [5, false]);
check("modern: the retry has a new id", ask?.id !== retry?.id, true);
check("modern: and brings state and answer", part(retry?.params).requestState === state, true);
check("modern: the answer under the same key", part(part(retry?.params).inputResponses).confirm_amount, {
  action: "accept",
  content: { approve: true },
});
check("modern: the last answer completes", part(complete?.result).resultType, "complete");

const legacy = await submit("legacy");
const pushed = legacy.wire.filter(({ direction, message }) => direction === "←" && message.method);
check(
  "legacy: the question is pushed into the running call",
  pushed.map(({ message }) => message.method),
  ["elicitation/create"],
);

check("both eras ask the same", legacy.asked, modern.asked);
check("both eras answer the same", legacy.texts, modern.texts);
check("and this is what", modern.texts, [
  "EXP-80 submitted: 80 CNY for tea",
  "EXP-2499 submitted: 2499 CNY for travel",
  "Not submitted: 5000 CNY for a party",
]);
await server.close();
