import type { SignatureAlgorithm } from "@tenon/core/contract";
import { attempt, usageError } from "../failure.ts";

/** Flags of `tenon keys new --contract`. */
export interface ContractKeyFlags {
  readonly alg?: string;
  readonly kid?: string;
  readonly activeFrom?: string;
  readonly out?: string;
  readonly json?: boolean;
}

const ALGORITHMS = ["HS256", "EdDSA"] as const satisfies readonly SignatureAlgorithm[];

function algorithmOf(given: string): SignatureAlgorithm {
  const found = ALGORITHMS.find((known) => known === given);
  if (found) return found;
  throw usageError(`--alg ${given} is for tokens`, `a contract is signed with ${ALGORITHMS.join(" or ")}`);
}

/** Prints a new key of a context contract: the server's line, and the one its clients get. Nothing is written to a file. */
export async function makeContractKey({ alg = "HS256", kid, activeFrom, out, json }: ContractKeyFlags): Promise<void> {
  const algorithm = algorithmOf(alg);
  if (out !== undefined)
    throw usageError("--out is for tokens", "a contract's key is one line, printed for your environment");
  if (activeFrom !== undefined && Number.isNaN(Date.parse(activeFrom))) {
    throw usageError(`--active-from ${activeFrom} is no time`, "give one as ISO 8601, such as 2026-12-01T00:00:00Z");
  }
  const { newContractKey, publicContractKey, readContractKeys, writeContractKeys } = await import(
    "@tenon/core/contract"
  );
  await attempt("no key was made", async () => {
    const name = kid ?? new Date(activeFrom ?? Date.now()).toISOString().slice(0, 10);
    const from = activeFrom === undefined ? undefined : new Date(activeFrom).toISOString();
    const key = newContractKey({ kid: name, alg: algorithm, ...(from !== undefined && { activeFrom: from }) });
    const server = writeContractKeys([key]);
    readContractKeys(server); // the name is checked where it is read
    const client = writeContractKeys([publicContractKey(key)]);
    const shared = algorithm === "HS256" ? "the same: whoever has it can also sign" : "the public half";
    process.stdout.write(
      json
        ? `${JSON.stringify({ kid: name, alg: algorithm, ...(from !== undefined && { activeFrom: from }), server, client })}\n`
        : `${algorithm} key ${name}${from === undefined ? "" : `, in use from ${from}`}
  server   TENON_CONTRACT_KEYS=${server}
  clients  ${client} (${shared})
Two keys are live at a time: write the next one behind the present one, separated by a comma.
`,
    );
  });
}
