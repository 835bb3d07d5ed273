import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { running } from "../../packages/cli/test/tenon.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-docs-"));
const config = join(import.meta.dirname, "../../examples/time-server/tenon.yaml");
const started = await running(["serve", "--config", config, "--port", "0"], { cwd: folder });
const url = String(started.ready.url);

// #region client
import { createClient, renderText } from "@tenon/client";

const contract = { context: { user_id: "alice" } }; // what the file's context_schema asks for
const client = createClient({ servers: { time: { url, contract } } });
const now = await client.callTool("time", "get_current_time", { timezone: "Asia/Shanghai" });
console.error(renderText(now.content)); // {"timezone":"Asia/Shanghai","datetime":"2026-11-30T21:15+08:00","offset":480}
// #endregion

assert.match(renderText(now.content), /"datetime":"\d{4}-\d\d-\d\dT\d\d:\d\d\+08:00"/);
const nobody = createClient({ servers: { time: { url } } });
await assert.rejects(nobody.callTool("time", "get_current_time", { timezone: "UTC" }), /user_id/);
await Promise.all([client.close(), nobody.close()]);
assert.equal(await started.stop("SIGTERM"), 0);
rmSync(folder, { recursive: true });
