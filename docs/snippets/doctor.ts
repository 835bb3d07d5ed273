import assert from "node:assert/strict";
import "../../test/built.ts";
import { createServer } from "@tenon/server";

const orders = createServer({ name: "orders", version: "1.0.0" });
orders.tool("query_order", {}, () => "none");
const { port } = await orders.listen({ port: 0 });
const url = `http://127.0.0.1:${port}/mpc`; // a typing error

// #region program
import { execFile } from "node:child_process";

const examined = await new Promise<string>((resolve) => {
  // an exit code that is not 0 is an error to execFile; the report is there all the same
  execFile("npx", ["tenon", "doctor", url, "--json"], (_error, stdout) => resolve(stdout));
});
const { ok, targets } = JSON.parse(examined);
for (const { code, cause, evidence, fix } of targets[0].findings) console.error(code, cause, evidence, fix);
// #endregion
assert.equal(ok, false);
assert.deepEqual(
  targets[0].findings.map(({ code }: { code: string }) => code),
  ["wrong_path"],
);
assert.match(targets[0].findings[0].fix, /use http:\/\/127\.0\.0\.1:\d+\/mcp/);
await orders.close();
