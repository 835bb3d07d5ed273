import { MultiServerMCPClient, OfflineModel } from "@tenon/agent";
import { createClient, renderText } from "@tenon/client";
import { createAgent, HumanMessage, SystemMessage } from "langchain";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

await using client = createClient({ servers: { stocks: child(import.meta) } });
const call = (tool: string, args: Record<string, unknown>) => client.callTool("stocks", tool, args);

check("a stock by name", renderText((await call("search_stock", { keyword: "特斯拉" })).content), /"symbol":"TSLA"/);
check("and by code", renderText((await call("search_stock", { keyword: "0000" })).content), /平安银行/);
check("a quote", (await call("get_quote", { symbol: "TSLA" })).structured, {
  symbol: "TSLA",
  name: "特斯拉",
  price: 245.8,
  market: "US",
});
const missing = await call("get_quote", { symbol: "XXXX" });
check("no such stock", [missing.isError, renderText(missing.content)], [true, "没有代码为 XXXX 的股票"]);

// all resources of a server, for a system prompt; templates are read by address
const resources = await client.readResources("stocks");
check("every listed resource", resources.map(({ uri, mimeType }) => `${uri} ${mimeType}`).sort(), [
  "config://tags application/json",
  "market://overview application/json",
  "research://methodology text/markdown",
]);
const [methodology] = await client.readResources("stocks", ["research://methodology"]);
check("the method as text", methodology?.asString(), /基本面.*技术面.*同业比较.*评级/s);
const [overview] = await client.readResources("stocks", ["market://overview"]);
check("the market as JSON", JSON.parse(overview?.asString() ?? "").sectors[1], {
  name: "新能源汽车",
  change: "+1.8%",
  leaders: ["TSLA", "BYD"],
});
const [stock, quote] = await client.readResources("stocks", ["stock://AAPL", "quotes://CN/000001"]);
check("a template", JSON.parse(stock?.asString() ?? "").price, 198.5);
check("a template with two variables", quote?.asString(), "12.35");

const [message] = await client.getPrompt("stocks", "analysis_report", { stock_name: "特斯拉" });
const prompt = message?.content.type === "text" ? message.content.text : "";
check("the prompt names the stock", prompt, /特斯拉/);
check("and four numbered sections", prompt.match(/^\d\. /gm), ["1. ", "2. ", "3. ", "4. "]);

// the agent: what the server knows goes into its system prompt, what the server can do are its tools
await using servers = new MultiServerMCPClient({
  mcpServers: { stocks: { transport: "stdio", ...child(import.meta) } },
});
const known = await servers.getResources("stocks", { uris: ["research://methodology", "market://overview"] });
const [task] = await servers.getPrompt("stocks", "analysis_report", { arguments: { stock_name: "特斯拉" } });
const systemPrompt = new SystemMessage([...known.map((blob) => blob.asString()), task?.text ?? ""].join("\n\n"));

// The stand-in for a language model: it looks the name up, asks for the price, and writes one line per section it was given.
const model = new OfflineModel({
  reply({ text, system, results: [found, price] }) {
    if (!found) return { calls: [{ name: "search_stock", args: { keyword: text } }] };
    const symbol = /"symbol":"(\w+)"/.exec(found.text)?.[1] ?? "";
    if (!price) return { calls: [{ name: "get_quote", args: { symbol } }] };
    const sector = JSON.parse(/^\{"sectors".*$/m.exec(system)?.[0] ?? "{}").sectors.find(
      ({ leaders }: { leaders: string[] }) => leaders.includes(symbol),
    );
    const facts = [
      `${text}（${symbol}）`,
      `现价 ${JSON.parse(price.text).price}`,
      `${sector.name} ${sector.change}`,
      "持有：数据有限",
    ];
    const sections = system.match(/^\d\. .+$/gm)?.slice(-4) ?? [];
    return { text: sections.map((section, i) => `${section}：${facts[i]}`).join("\n") };
  },
});
const agent = createAgent({ model, tools: await servers.getTools(), systemPrompt });
const { messages } = await agent.invoke({ messages: [new HumanMessage("特斯拉")] });
check("a report of four sections, from tools, resources and prompt", messages.at(-1)?.text.split("\n"), [
  "1. 公司概况：特斯拉（TSLA）",
  "2. 行情与技术面：现价 245.8",
  "3. 行业与同业比较：新能源汽车 +1.8%",
  "4. 评级与理由：持有：数据有限",
]);
const used = messages.flatMap((message) => (message.type === "tool" ? [message.name] : []));
check("found by name, then priced", used, ["search_stock", "get_quote"]);
await servers.close();
