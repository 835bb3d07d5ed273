import { createServer } from "@tenon/server";
import { z } from "zod";

const products = [
  {
    keyword: "耳机",
    zh: { name: "无线蓝牙耳机降噪款", price: "¥299" },
    en: { name: "Wireless Bluetooth Earbuds, ANC", price: "$49" },
  },
  {
    keyword: "键盘",
    zh: { name: "机械键盘青轴", price: "¥599" },
    en: { name: "Mechanical Keyboard, Blue Switches", price: "$89" },
  },
  {
    keyword: "显示器",
    zh: { name: "显示器 4K 27寸", price: "¥2499" },
    en: { name: "4K Monitor, 27 inch", price: "$349" },
  },
];
const language = z.enum(["zh", "en"]).default("zh");

const server = createServer({ name: "search", version: "1.0.0" });
server.tool(
  "search_product",
  {
    description: "Finds products by keywords.",
    input: z.object({
      keyword: z.string(),
      language,
      region: z.string().default("CN"),
      limit: z.int().min(1).default(10),
    }),
  },
  (args) => {
    const found = products.filter(({ keyword }) => args.keyword.includes(keyword)).slice(0, args.limit);
    return { region: args.region, items: found.map((product) => product[args.language]) };
  },
);
server.tool("opening_hours", { description: "When the shop is open.", input: z.object({ language }) }, (args) =>
  args.language === "zh" ? "9:00 至 21:00" : "9 am to 9 pm",
);

export default server;
await server.run(import.meta);
