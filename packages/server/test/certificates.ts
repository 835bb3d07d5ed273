import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Path of a PEM file that is for tests only. */
export const pemPath = (name: string): string => fileURLToPath(new URL(`./fixtures/tls/${name}.pem`, import.meta.url));

const read = (name: string): string => readFileSync(pemPath(name), "utf8");

/** Two certificates for localhost that only sign themselves, each with its key. */
export const FIRST = { cert: read("first.cert"), key: read("first.key") };
export const SECOND = { cert: read("second.cert"), key: read("second.key") };
