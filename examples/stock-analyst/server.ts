import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const stocks: Record<string, { name: string; price: number; market: string }> = {
  AAPL: { name: "苹果", price: 198.5, market: "US" },
  TSLA: { name: "特斯拉", price: 245.8, market: "US" },
  "000001": { name: "平安银行", price: 12.35, market: "CN" },
};
function find(symbol: string): { symbol: string; name: string; price: number; market: string } {
  const stock = stocks[symbol];
  if (!stock) throw new ToolError(`没有代码为 ${symbol} 的股票`);
  return { symbol, ...stock };
}

const methodology = `# 研究方法

1. **基本面**：收入、利润、现金流，近三年的变化。
2. **技术面**：趋势、成交量、关键价位。
3. **同业比较**：估值与增速放在同一张表里。
4. **评级**：给出买入、持有或卖出，每个结论都写明理由。
`;
const overview = {
  sectors: [
    { name: "人工智能", change: "+3.2%", leaders: ["NVDA", "AMD"] },
    { name: "新能源汽车", change: "+1.8%", leaders: ["TSLA", "BYD"] },
    { name: "金融", change: "+0.5%", leaders: ["000001", "601398"] },
  ],
};

const server = createServer({ name: "stocks", version: "1.0.0" });
server.tool(
  "search_stock",
  { description: "Finds stocks by code or name.", input: z.object({ keyword: z.string() }) },
  ({ keyword }) =>
    Object.entries(stocks)
      .filter(([symbol, { name }]) => symbol.includes(keyword.toUpperCase()) || name.includes(keyword))
      .map(([symbol, { name }]) => ({ symbol, name })),
);
server.tool(
  "get_quote",
  {
    description: "The latest price of a stock.",
    input: z.object({ symbol: z.string().describe("code, e.g. AAPL") }),
    output: z.object({ symbol: z.string(), name: z.string(), price: z.number(), market: z.string() }),
  },
  ({ symbol }) => find(symbol),
);
server.resource("research://methodology", { mimeType: "text/markdown" }, () => methodology);
server.resource("market://overview", { mimeType: "application/json" }, () => overview);
server.resource("config://tags", { mimeType: "application/json" }, () => ["蓝筹", "成长", "高股息"]);
server.resource("stock://{symbol}", { mimeType: "application/json" }, ({ symbol = "" }) => find(symbol));
server.resource("quotes://{market}/{symbol}", { mimeType: "text/plain" }, ({ market, symbol = "" }) => {
  const stock = find(symbol);
  return stock.market === market ? String(stock.price) : undefined; // undefined: there is no such resource
});
server.prompt(
  "analysis_report",
  { description: "Asks for a research report.", input: z.object({ stock_name: z.string() }) },
  ({ stock_name }) => `请为${stock_name}写一份研究报告，分四部分：
1. 公司概况
2. 行情与技术面
3. 行业与同业比较
4. 评级与理由`,
);

export default server;
await server.run(import.meta);
