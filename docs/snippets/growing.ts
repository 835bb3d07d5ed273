import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const directory = mkdtempSync(join(tmpdir(), "tenon-"));
const stateKeys = [randomBytes(32).toString("base64url")];

// #region first
import { createServer } from "@tenon/server";
import { openStores } from "@tenon/store/open";

// a file in the folder; with TENON_DATABASE_URL=postgres://… tables that any number of processes share
const store = await openStores({ directory });
const orders = createServer({ name: "orders", version: "1.0.0", store, stateKeys, replicas: true });
orders.tool("reconcile", { task: "optional" }, async (_, ctx) => ctx.step("close the books", () => "done"));

const { url, close } = await orders.listen({ port: 0 });
const admin = await orders.admin({ port: 0 }); // /healthz and /readyz, on a port of their own
// #endregion

assert.equal((await fetch(`${admin.url}/readyz`)).status, 200);
assert.notEqual(new URL(url).port, new URL(admin.url).port);
await close();

// #region worker
// another process, which serves nobody: it runs the tasks of those that serve with `tasks: { concurrency: 0 }`
const working = await orders.work({ concurrency: 4 });
// #endregion
await working.close();
await orders.close();
await assert.rejects(fetch(`${admin.url}/healthz`));
await store.close();
rmSync(directory, { recursive: true });
