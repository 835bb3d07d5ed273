#!/usr/bin/env node
// npm links no command whose file is not there when it installs, and `dist` is made later: so this file stands here. In a checkout,
// which is told by what no published package has, it builds what is missing first, as every command of the repository does.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
if (existsSync(path("../tsconfig.json"))) {
  const { status } = spawnSync(process.execPath, [path("../../../scripts/with-build.mjs")], {
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) process.exit(status ?? 1);
}
await import("../dist/main.js");
