// Opens the signing key that others open for the first time at the same moment, and prints its id.
import { openSigningKey } from "../src/development/index.ts";

process.stdout.write((await openSigningKey(process.argv[2] ?? "")).kid);
