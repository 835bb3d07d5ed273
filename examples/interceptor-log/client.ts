import { createClient, type Interceptor, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import math from "../math/server.ts";

const { url } = await math.listen({ port: 0 });
const lines: string[] = [];

/** One line before and one after every call: an interceptor sees the request going in and the result coming out. */
const log: Interceptor = async (request, next) => {
  lines.push(`→ ${request.server}/${request.name} ${JSON.stringify(request.args)}`);
  const result = await next(request);
  lines.push(`← ${request.server}/${request.name} ${renderText(result.content, result.structured)}`);
  return result;
};

await using client = createClient({ servers: { math: { url } }, interceptors: [log] });
const result = await client.callTool("math", "multiply", { a: 8, b: 5 });

console.log(lines.join("\n"));
check("8 × 5", renderText(result.content), "40");
check("a line before and a line after", lines, ['→ math/multiply {"a":8,"b":5}', "← math/multiply 40"]);

await client.close();
await math.close();
