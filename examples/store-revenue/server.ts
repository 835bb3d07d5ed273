import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const stores: Record<string, { name: string; city: string; revenue: number }> = {
  ST001: { name: "人民广场店", city: "上海", revenue: 12850.5 },
  ST002: { name: "国贸店", city: "北京", revenue: 9320.0 },
  ST003: { name: "天河店", city: "广州", revenue: 15704.2 },
};
const input = z.object({ store_id: z.string().describe("for example ST001"), date: z.iso.date() });

const server = createServer({ name: "stores", version: "1.0.0", logSink: () => undefined });
server.tool(
  "get_daily_revenue",
  { description: "What a store took in on a day, in CNY.", input, annotations: { readOnlyHint: true } },
  ({ store_id }) => {
    const store = stores[store_id];
    if (!store) throw new ToolError(`store ${store_id} does not exist`); // meant for the model
    return store.revenue;
  },
);
server.tool(
  "audit_revenue",
  { description: "The same figure from the ledger.", input, annotations: { readOnlyHint: true } },
  ({ store_id }) => {
    const store = stores[store_id];
    if (!store) throw new Error(`no row ${store_id} in ledger at 10.0.0.7`); // an accident: nobody outside reads it
    return store.revenue;
  },
);
server.tool(
  "read_file",
  { description: "Reads a file of the shop.", input: z.object({ path: z.string() }) },
  ({ path }) => {
    return `shop: ${path}`;
  },
);
server.resource("stores://list", { mimeType: "application/json" }, () => Object.keys(stores));
server.resource(
  "stores://{store_id}/profile",
  { mimeType: "application/json" },
  ({ store_id = "" }) => stores[store_id],
);
server.prompt(
  "compare_revenue",
  { description: "Asks for a comparison of all stores.", input: z.object({ date: z.iso.date() }) },
  ({ date }) => `比较所有门店 ${date} 的营业额，并指出最高的一家。`,
);

export default server;
await server.run(import.meta);
