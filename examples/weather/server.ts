import { createServer } from "@tenon/server";
import { z } from "zod";

const reports: Record<string, string> = {
  北京: "晴 22–28 °C 北风3级",
  上海: "多云 25–30 °C 东南风2级",
  深圳: "阵雨 26–31 °C 南风4级",
};

const server = createServer({ name: "Weather", version: "1.0.0" });
server.tool(
  "get_weather",
  { description: "Today's weather of a city.", input: z.object({ location: z.string().describe("city, e.g. 北京") }) },
  async ({ location }) => {
    await new Promise((resolve) => setTimeout(resolve, 10)); // a real one asks somebody
    return reports[location] ?? `没有 ${location} 的天气数据`;
  },
);

export default server;
await server.run(import.meta, { transport: "http", port: 8000 });
