import { createClient, renderText } from "@tenon/client";
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
