import { createClient, renderText } from "@tenon/client";
import { createServer } from "@tenon/server";
import { z } from "zod";
import { check } from "../lib/check.ts";

const query = z.object({ query: z.string() });

/** A shop's server and a library's server, written by people who never met: both call their tool `search`. */
const shop = createServer({ name: "shop", version: "1.0.0" });
shop.tool("search", { input: query }, ({ query }) => `${query}: in stock`);
const library = createServer({ name: "library", version: "1.0.0" });
library.tool("search", { input: query }, ({ query }) => `${query}: on loan`);

const servers = {
  shop: { url: (await shop.listen({ port: 0 })).url },
  library: { url: (await library.listen({ port: 0 })).url },
};

/** What a model would ask for: names from the catalog, arguments as JSON. No splitting of names, no table of servers. */
const asked = [
  { name: "mcp_shop_search", args: '{"query":"Moby-Dick"}' },
  { name: "mcp_library_search", args: '{"query":"Moby-Dick"}' },
];

await using client = createClient({ servers });
const tools = await client.listTools();
const answers: string[] = [];
for (const { name, args } of asked) {
  const result = await client.dispatch(name, JSON.parse(args));
  answers.push(renderText(result.content));
}
console.log(answers.join("\n"));

check(
  "both tools have a name of their own",
  tools.map(({ name, server, wireName }) => [name, server, wireName]),
  [
    ["mcp_shop_search", "shop", "search"],
    ["mcp_library_search", "library", "search"],
  ],
);
check("each call reached its server", answers, ["Moby-Dick: in stock", "Moby-Dick: on loan"]);

/** Whoever wants plain names learns which two tools are in each other's way, and gives them names by a function. */
await using plain = createClient({ servers, naming: "plain" });
const refusal: unknown = await plain.listTools().catch((error: unknown) => error);
check("plain names are refused, naming both", refusal, /"search" of server "shop" and "search" of server "library"/);

await using own = createClient({ servers, naming: (server, tool) => (server === "shop" ? `buy_${tool}` : tool) });
check(
  "names of one's own",
  (await own.listTools()).map(({ name }) => name),
  ["buy_search", "search"],
);
check("dispatched all the same", renderText((await own.dispatch("buy_search", { query: "Emma" })).content), /in stock/);

await Promise.all([client.close(), plain.close(), own.close()]);
await Promise.all([shop.close(), library.close()]);
