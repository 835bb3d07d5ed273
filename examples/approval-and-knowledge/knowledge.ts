/** The knowledge base: `knowledge.ts <folder> <name> <version>`. Each process is one replica of it. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { createServer } from "@tenon/server";
import { z } from "zod";
import { caller } from "./contract.ts";
import { openArticles } from "./search.ts";

const [folder = ".", name = "kb", version = "1.0.0"] = process.argv.slice(2);
const articles = openArticles(join(import.meta.dirname, "articles"));

// its keys are in TENON_CONTRACT_KEYS
await using server = createServer({ name: "knowledge", version, logLevel: "error", contract: { schema: caller } });

/** Everything it was told of who asks is written down, so that the example can look at it. */
server.use((request, next) => {
  const { method, meta } = request;
  if (method !== "tools/call" && method !== "resources/read") return next();
  const line = { server: "kb", replica: name, method, context: meta["dev.tenon/context"] };
  appendFileSync(join(folder, "told"), `${JSON.stringify(line)}\n`);
  return next();
});

const hits = z.array(z.object({ name: z.string(), title: z.string(), snippet: z.string() }));
const first = z.object({ hits, answered_by: z.string() });
// version 1.1.0 also says in how many articles it has looked
const output = version === "1.0.0" ? first : first.extend({ searched: z.int() });
server.tool(
  "search_articles",
  {
    description: "Searches the articles of the customer service, in Chinese and English. Best first.",
    input: z.object({ query: z.string().max(200), limit: z.int().min(1).max(20).default(5) }),
    output,
    annotations: { readOnlyHint: true },
  },
  ({ query, limit }) => ({
    hits: articles.search(query, limit),
    answered_by: `${name} ${version}`,
    ...(version !== "1.0.0" && { searched: articles.names.length }),
  }),
);
server.resource(
  "kb://articles/{name}",
  { mimeType: "text/markdown", description: "A whole article, by the name that a search gives." },
  ({ name = "" }) => articles.read(name), // one of those it has read; nothing is opened by name
);

const { url } = await server.listen({ port: 0 });
console.log(url);
await new Promise((resolve) => process.once("SIGTERM", resolve));
