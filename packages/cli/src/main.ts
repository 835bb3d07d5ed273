#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command } from "commander";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
}; // our own manifest

await new Command("tenon").description("The command line of Tenon.").version(version).parseAsync();
