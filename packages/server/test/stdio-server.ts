import { shop } from "./servers.ts";

const server = shop();
server.tool("noisy", {}, () => {
  console.log("this must not reach the protocol");
  return "ok";
});
server.tool("brief", {}, () => new Promise((resolve) => setTimeout(() => resolve("done"), 300)));
server.tool("grow", {}, () => {
  server.tool("grown", {}, () => 1);
  server.notify.toolsChanged();
  return "grown";
});
await server.run(import.meta);
