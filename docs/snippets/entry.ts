import { createServer } from "@tenon/server";

const server = createServer({
  name: "clock",
  version: "1.0.0",
  lifespan: async () => ({ value: { opened: new Date(0) }, close: () => console.error("closed") }),
});
server.tool("opened", {}, (_, ctx) => ctx.lifespan.opened);

export default server;
await server.run(import.meta); // only when this file is the program: stdio, or --transport http --port 8030
