#!/usr/bin/env node
import { codeOf } from "@tenon/core";
import { run } from "./program.ts";

// whoever reads has enough (`tenon audit tail | head -1`): nothing failed, and there is nobody to tell more
process.stdout.on("error", (error) => {
  if (codeOf(error) !== "EPIPE") throw error;
  process.exit();
});
process.exitCode = await run(process.argv.slice(2));
