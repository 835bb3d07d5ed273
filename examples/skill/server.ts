import { createServer } from "@tenon/server";
import { skills } from "@tenon/server/skills";
import { z } from "zod";

const server = createServer({ name: "refunds", version: "1.0.0" });
server.tool(
  "refund",
  { description: "Refunds an order. The skill refund-check says when.", input: z.object({ orderId: z.string() }) },
  ({ orderId }) => `${orderId} refunded`,
);
(await skills(new URL("skills", import.meta.url))).addTo(server);

export default server;
await server.run(import.meta);
