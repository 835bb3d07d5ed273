import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createClient } from "@tenon/client";
import { check } from "../lib/check.ts";

const folder = mkdtempSync(join(tmpdir(), "time-server-"));
const tenon = fileURLToPath(import.meta.resolve("tenon/main"));
const args = ["serve", "--config", "tenon.yaml", "--port", "0", "--workers", "2", "--data", folder, "--json"];
/** What signs the contract of the file, and by what the client knows it. */
const keys = `2026-11:HS256:${randomBytes(32).toString("base64url")}`;
const server = spawn(process.execPath, [tenon, ...args], {
  cwd: import.meta.dirname,
  env: { ...process.env, TENON_CONTRACT_KEYS: keys },
  stdio: ["ignore", "pipe", "inherit"],
});
process.once("exit", () => server.kill("SIGKILL")); // whatever becomes of this process
const [line] = await once(createInterface(server.stdout), "line");
const { name, url, workers } = JSON.parse(String(line));
check("the file is served by two processes on one port", [name, workers], ["time", 2]);

await using client = createClient({ servers: { time: { url, contract: { keys, context: { user_id: "alice" } } } } });
check("the tools are those of the file", (await client.listTools()).map((tool) => tool.wireName).sort(), [
  "convert_time",
  "get_current_time",
]);
const now = await client.callTool("time", "get_current_time", { timezone: "Asia/Shanghai" });
check("it knows the time in Shanghai", JSON.stringify(now.content), /\d{4}-\d\d-\d\dT\d\d:\d\d\+08:00/);
const given = { source_timezone: "Asia/Shanghai", time: "21:30", target_timezone: "Asia/Kolkata" };
const converted = await client.callTool("time", "convert_time", given);
check("half past nine there is seven in Kolkata", JSON.stringify(converted.content), /T19:00\+05:30.*-2.5h/);
const nowhere = await client.callTool("time", "get_current_time", { timezone: "Mars/Olympus" });
check(
  "a zone that does not exist is refused in words",
  [nowhere.isError, JSON.stringify(nowhere.content)].join(),
  /^true.*no time zone/,
);
const [time] = client.servers();
const { signed, capabilities } = time?.contract ?? {};
check("its contract is signed", [signed, capabilities], [true, ["tools.list", "tools.execute", "contexts.get"]]);
await using nobody = createClient({ servers: { time: { url, contract: { keys } } } });
const refused = await nobody.callTool("time", "get_current_time", { timezone: "UTC" }).then(() => "answered", String);
check("who does not say who asks gets no answer", refused, /user_id/);

await nobody.close();
await client.close();
server.kill("SIGTERM");
check("and it ends when it is asked to", (await once(server, "exit"))[0], 0);
rmSync(folder, { recursive: true });
