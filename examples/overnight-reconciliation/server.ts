import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer } from "@tenon/server";
import { openSqlite } from "@tenon/store/sqlite";
import { z } from "zod";
import { say } from "../lib/locale.ts";

const [folder = ".", port = "0"] = process.argv.slice(2);

/** What the shop booked and what the bank paid out, in fen. */
const accounts = [
  { name: "Alipay", booked: 1_285_050, paid: 1_285_050 },
  { name: "WeChat Pay", booked: 932_000, paid: 931_400 },
  { name: "UnionPay", booked: 1_570_420, paid: 1_570_420 },
  { name: "Visa", booked: 488_000, paid: 488_000 },
  { name: "Mastercard", booked: 251_000, paid: 250_000 },
  { name: "JCB", booked: 64_300, paid: 64_300 },
];

/** Everything with an effect is written down, so that the example can count it. */
const effect = (line: string): void => appendFileSync(join(folder, "effects"), `${line}\n`);

await using stores = openSqlite({ path: join(folder, "ledger.sqlite"), leaseMs: 1_000 });
await using server = createServer({ name: "ledger", version: "1.0.0", store: stores, logLevel: "error" });

server.tool(
  "reconcile",
  {
    description: "Compares the bookings of a day with what the payment providers paid out.",
    input: z.object({ day: z.iso.date() }),
    output: z.object({ day: z.string(), differences: z.array(z.string()), corrected: z.boolean() }),
    task: "required",
  },
  async ({ day }, ctx) => {
    const differences: string[] = [];
    for (const [index, { name, booked, paid }] of accounts.entries()) {
      const difference = await ctx.step(`compare ${name}`, async () => {
        await sleep(250); // the statement is long
        effect(`compared ${day} ${name}`);
        return paid - booked;
      });
      if (difference !== 0) differences.push(`${name} ${(difference / 100).toFixed(2)}`);
      await ctx.progress(index + 1, accounts.length, name);
    }
    const answer = await ctx.elicit(
      say(`更正差额：${differences.join("，")}？`, `Correct ${differences.join(", ")}?`),
      ["correct", "leave"],
    );
    const corrected = answer.action === "accept" && answer.data === "correct";
    if (corrected) await ctx.step("correct", () => effect(`corrected ${day} ${differences.join(", ")}`));
    return { day, differences, corrected };
  },
);

const { url } = await server.listen({ port: Number(port) });
console.log(url);
await new Promise((resolve) => process.once("SIGTERM", resolve));
