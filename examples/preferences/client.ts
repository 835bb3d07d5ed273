import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseStore } from "@langchain/langgraph";
import { type AgentClient, type AgentInterceptor, mcpMiddleware, mcpTools, OfflineModel } from "@tenon/agent";
import { SqliteStore } from "@tenon/agent/sqlite-store";
import { createClient } from "@tenon/client";
import { createAgent, HumanMessage } from "langchain";
import { z } from "zod";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";
import { say } from "../lib/locale.ts";

const contextSchema = z.object({ userId: z.string() });
type Context = z.infer<typeof contextSchema>;

/** What a user prefers goes over what the model wrote, in searches only. */
const preferences: AgentInterceptor<Context> = async (request, next) => {
  if (request.name !== "search_product") return next(request);
  const store = request.runtime.store as BaseStore | undefined; // the store the agent was made with
  const saved = await store?.get(["user_prefs"], request.runtime.context?.userId ?? "");
  return next(saved ? request.with({ args: { ...request.args, ...saved.value } }) : request);
};

// The same two calls for whoever asks: the model knows nothing of languages and regions.
const model = new OfflineModel({
  reply({ text, results }) {
    if (results.length > 0) return { text: results.map((result) => result.text).join("\n") };
    return {
      calls: [
        { name: "mcp_search_search_product", args: { keyword: text } },
        { name: "mcp_search_opening_hours", args: {} },
      ],
    };
  },
});

const folder = mkdtempSync(join(tmpdir(), "preferences-"));
const file = join(folder, "memory.db");
/** Another process writes down what the users prefer. */
function remember(): void {
  const { command, args } = child(import.meta, "remember.ts");
  execFileSync(command, [...args, file], { stdio: "inherit", timeout: 30_000 });
}

/** A program that opens the memory, answers one question and ends. */
async function search(userId: string, question: string): Promise<{ products: unknown; hours: string | undefined }> {
  await using store = new SqliteStore(file);
  const client: AgentClient<Context> = createClient({
    servers: { search: child(import.meta) },
    interceptors: [preferences],
  });
  const tools = await mcpTools(client);
  const agent = createAgent({ model, tools, store, contextSchema, middleware: [mcpMiddleware()] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage(question)] }, { context: { userId } });
  await client.close();
  const [products = "", hours] = (messages.at(-1)?.text ?? "").split("\n");
  console.log(say(`${userId} 搜索“${question}”：${products}`, `${userId} searches "${question}": ${products}`));
  return { products: JSON.parse(products), hours };
}

try {
  const nobody = await search("u_001", "耳机");
  check("nothing is known yet: the server's defaults", nobody.products, {
    region: "CN",
    items: [{ name: "无线蓝牙耳机降噪款", price: "¥299" }],
  });

  remember();
  const first = await search("u_001", "耳机");
  check("u_001 reads English and shops in the US", first.products, {
    region: "US",
    items: [{ name: "Wireless Bluetooth Earbuds, ANC", price: "$49" }],
  });
  const second = await search("u_002", "耳机");
  check("u_002, the same words: Chinese and CN", second.products, {
    region: "CN",
    items: [{ name: "无线蓝牙耳机降噪款", price: "¥299" }],
  });

  const few = await search("u_001", "耳机 键盘 显示器");
  check("u_001 wants two results", few.products, {
    region: "US",
    items: [
      { name: "Wireless Bluetooth Earbuds, ANC", price: "$49" },
      { name: "Mechanical Keyboard, Blue Switches", price: "$89" },
    ],
  });
  const all = await search("u_002", "耳机 键盘 显示器");
  check("u_002 sees all three", JSON.stringify(all.products).match(/¥\d+/g), ["¥299", "¥599", "¥2499"]);
  check("other tools are left alone", first.hours, "9:00 至 21:00");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
