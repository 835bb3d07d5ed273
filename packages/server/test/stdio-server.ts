import { shop } from "./servers.ts";

const server = shop();
server.tool("noisy", {}, () => {
  console.log("this must not reach the protocol");
  return "ok";
});
await server.run(import.meta);
