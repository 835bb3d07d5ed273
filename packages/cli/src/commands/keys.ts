import { join } from "node:path";
import type { SigningAlgorithm } from "@tenon/server/development";
import { type Command, Option } from "commander";
import { dataDirectory, makeDataDirectory } from "../data-directory.ts";
import { attempt, usageError } from "../failure.ts";
import { type ContractKeyFlags, makeContractKey } from "./contract-keys.ts";

const SIGNING = ["ES256", "RS256", "EdDSA"] as const satisfies readonly SigningAlgorithm[];

const development = () => import("@tenon/server/development");

/** The key's file: where `--key` says, else in the data directory. */
export async function keyFile(given: string | undefined): Promise<string> {
  return given ?? join(dataDirectory(), (await development()).SIGNING_KEY_FILE);
}

interface KeyFlags extends ContractKeyFlags {
  readonly contract?: boolean;
}

function algorithmOf(given: string): SigningAlgorithm {
  const found = SIGNING.find((known) => known === given);
  if (found) return found;
  throw usageError(
    `--alg ${given} is for contracts`,
    `tokens are signed with ${SIGNING.join(", ")}; or add --contract`,
  );
}

async function makeKey(flags: KeyFlags): Promise<void> {
  if (flags.contract) return makeContractKey(flags);
  const stray = flags.kid !== undefined ? "--kid" : flags.activeFrom !== undefined ? "--active-from" : undefined;
  if (stray) throw usageError(`${stray} is for contracts`, "add --contract, or leave it out");
  const wanted = algorithmOf(flags.alg ?? SIGNING[0]);
  const { createSigningKey, saveSigningKey, DEVELOPMENT_ISSUER, SIGNING_KEY_FILE } = await development();
  await attempt("no key was made", async () => {
    const directory = flags.out ?? dataDirectory();
    const path = directory.endsWith(".pem") ? directory : join(directory, SIGNING_KEY_FILE);
    if (flags.out === undefined) makeDataDirectory(directory);
    const key = await createSigningKey({ algorithm: wanted });
    const files = saveSigningKey(key, path);
    const { algorithm, kid } = key;
    const given = flags.out === undefined ? "" : ` --key ${files.privateKey}`;
    process.stdout.write(
      flags.json
        ? `${JSON.stringify({ algorithm, kid, files })}\n`
        : `${algorithm} key ${kid}
  private  ${files.privateKey} (only you can read it)
  public   ${files.publicKey}
  jwks     ${files.jwks}
Sign a token:  tenon token${given} --subject alice --audience http://127.0.0.1:8000/mcp
Check it:      jwt({ issuer: "${DEVELOPMENT_ISSUER}", audience: "http://127.0.0.1:8000/mcp", publicKey: <what is in ${files.publicKey}> })
`,
    );
  });
}

async function showKey(flags: { key?: string; pem?: boolean; json?: boolean }): Promise<void> {
  const { loadSigningKey, publicJwks, publicPem } = await development();
  await attempt("no key is shown", async () => {
    const key = await loadSigningKey(await keyFile(flags.key));
    const pem = flags.pem ? publicPem(key) : undefined;
    if (pem !== undefined) process.stdout.write(flags.json ? `${JSON.stringify({ pem })}\n` : pem);
    else process.stdout.write(`${JSON.stringify(publicJwks(key), undefined, flags.json ? 0 : 2)}\n`);
  });
}

/** `tenon keys new`, `tenon keys show`. */
export function addKeys(program: Command): void {
  const keys = program.command("keys").description("signing keys for development tokens");
  keys
    .command("new")
    .description("make a key pair for tokens, in files; with --contract print a key for a context contract")
    .option("--out <directory|file.pem>", "where it is written (default: TENON_DATA_DIR, else .tenon)")
    .addOption(
      new Option("--alg <algorithm>", "kind of key (default: ES256, with --contract HS256)").choices([
        ...SIGNING,
        "HS256",
      ]),
    )
    .option("--contract", "a key that signs a server's context contract, printed as TENON_CONTRACT_KEYS takes it")
    .option("--kid <name>", "with --contract: how the key is called (default: today, or the day it is in use from)")
    .option("--active-from <time>", "with --contract: from when on it signs, as ISO 8601 (default: now)")
    .option("--json", "print what was made as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  tenon keys new\n  tenon keys new --alg RS256 --out keys/ci.pem\n  tenon keys new --contract --alg EdDSA --active-from 2026-12-01T00:00:00Z",
    )
    .action(makeKey);
  keys
    .command("show")
    .description("print the public half: a key set, or PEM")
    .option("--key <file>", "private key (default: the one in the data directory)")
    .option("--pem", "as PEM instead of a JSON Web Key Set")
    .option("--json", "on one line")
    .addHelpText("after", "\nExamples:\n  tenon keys show > jwks.json\n  tenon keys show --pem --key keys/ci.pem")
    .action(showKey);
}
