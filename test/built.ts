import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

// For tests of what is built. `npm test` has built it already; a plain `vitest` must not test what was built of older sources.
const withBuild = fileURLToPath(new URL("../scripts/with-build.mjs", import.meta.url));
const { status, stderr } = spawnSync(process.execPath, [withBuild], { encoding: "utf8" });
if (status !== 0) throw new Error(`The workspace does not build:\n${stderr}`);
