import { readFileSync } from "node:fs";
import type { JsonObject } from "@tenon/core";

/** What a file for `tenon serve` may say: the published document, which editors use too. */
export const serverSchema = (): JsonObject =>
  JSON.parse(readFileSync(new URL("../schema/tenon-server.schema.json", import.meta.url), "utf8")) as JsonObject; // our own file
