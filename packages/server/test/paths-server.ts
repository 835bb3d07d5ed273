import { z } from "zod";
import { content, file, image, link, type TenonServer } from "../src/index.ts";
import { shop } from "./servers.ts";

/** A server with something of every kind: what is compared between the ways to serve it. */
export function pathsServer(): TenonServer {
  const server = shop();
  server.tool("parts", {}, () =>
    content(["see", image(new Uint8Array([1, 2]), "image/png"), file("a://b", "x", "text/plain"), link("a://b", "b")]),
  );
  server.tool("built", {}, () => ({
    content: [{ type: "text", text: "x", annotations: { priority: 1 } }],
    _meta: { k: 1 },
  }));
  server.tool("misbuilt", {}, () => ({ content: [{ type: "text", text: 7 }] }));
  server.tool("list", {}, () => [1, 2]);
  server.tool("trace", {}, (_, ctx) => ({ meta: ctx.meta, header: ctx.headers?.get("x-custom") }));
  server.tool(
    "regional",
    {
      input: z.object({
        region: z.string().meta({ "x-mcp-header": "Region" }).optional(),
        n: z.number().int().meta({ "x-mcp-header": "N" }).optional(),
      }),
    },
    (args) => args,
  );
  server.resource("news://today", { cache: { ttlMs: 5_000, scope: "public" } }, () => "news");
  server.resource("ask://me", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes", "no"])).action);
  server.prompt("ask", {}, async (_, ctx) => (await ctx.elicit("Sure?", ["yes", "no"])).action);
  return server;
}
