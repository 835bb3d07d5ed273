import type { EndpointConfig } from "@tenon/client/internal";
import { isRecord, type JsonObject, messageOf } from "@tenon/core";
import {
  CONTRACT_EXTENSION,
  CONTRACT_VERSIONS,
  type ContractDeclaration,
  contextFault,
  createKeyRing,
  readContractKeys,
  readDeclaration,
  type SignatureFault,
  schemaConflicts,
} from "@tenon/core/contract";
import { describeFault, surveySchema } from "@tenon/core/internal";
import type { Code } from "./codes.ts";
import type { Session } from "./protocol.ts";
import type { ExamOptions, Visit } from "./visit.ts";

const SIGNATURE_CODES: Readonly<Record<SignatureFault, Code>> = {
  unsigned: "contract_unsigned",
  unknown_key: "contract_unknown_key",
  wrong_algorithm: "contract_wrong_algorithm",
  invalid: "contract_invalid",
  expired: "contract_expired",
};

/** What a configuration says of a server's contract, in the place of what the command line says for all. */
export function withContract(options: ExamOptions, { contract }: Pick<EndpointConfig, "contract">): ExamOptions {
  if (contract === undefined) return options;
  const { keys, plain, context, schema } = contract;
  const given = typeof context === "object" ? context : undefined;
  const own = options.context === undefined ? given : options.context;
  return {
    ...options,
    ...(keys !== undefined && { keys: createKeyRing(typeof keys === "string" ? readContractKeys(keys) : keys) }),
    contractExpected: keys !== undefined || plain === "refuse" || options.contractExpected === true,
    ...(own !== undefined && { context: own }),
    // a file has no other schemas
    ...(isRecord(schema) && { contextSchema: schema as JsonObject }),
  };
}

/** Where a server of each era announces its contract. */
function announced({ capabilities, era }: Session): unknown {
  const places = era === "modern" ? ["extensions"] : ["experimental", "extensions"];
  for (const place of places) {
    const all = capabilities[place];
    if (isRecord(all) && all[CONTRACT_EXTENSION] !== undefined) return all[CONTRACT_EXTENSION];
  }
  return undefined;
}

function checkSignature(visit: Visit, declaration: ContractDeclaration): string {
  const { keys } = visit.options;
  const { signature, next_rotation_time } = declaration;
  if (!keys) return signature === undefined ? "none" : "not checked";
  const fault = keys.faultOf(declaration);
  if (fault === undefined) return "right";
  const by = signature === undefined ? "no signature" : `${signature.alg}, key "${signature.kid}"`;
  const until = fault === "expired" ? `; it counted until ${next_rotation_time ?? "never"}` : "";
  return visit.fail(SIGNATURE_CODES[fault], { evidence: `contract of "${declaration.server_id}": ${by}${until}` });
}

const requiredOf = ({ context_schema: { required } }: ContractDeclaration): readonly string[] =>
  Array.isArray(required) ? required.filter((name): name is string => typeof name === "string") : [];

function checkContext(visit: Visit, declaration: ContractDeclaration): void {
  const { context } = visit.options;
  const required = requiredOf(declaration);
  if (context === undefined) {
    if (required.length > 0) visit.note("context_needed", { evidence: `required: ${required.join(", ")}` });
    return;
  }
  const fault = contextFault(declaration.context_schema, context);
  if (fault?.reason === "missing_context_field") {
    const fix = `send "${fault.field}" in the context of every request`;
    visit.note("context_missing_field", { evidence: `field ${fault.field}: ${fault.problem}`, fix });
  } else if (fault) {
    visit.note("context_invalid", { evidence: `field ${fault.field}: ${fault.problem}` });
  }
}

/** What a capability of the contract needs among those that the server announces to everybody. */
const NEEDS: Readonly<Record<string, string>> = {
  tools: "tools",
  resources: "resources",
  prompts: "prompts",
  completion: "completions",
};

function checkDrift(visit: Visit, declaration: ContractDeclaration, { capabilities }: Session): void {
  const missing = declaration.capabilities.filter((one) => {
    const needed = NEEDS[one.split(".")[0] ?? ""];
    return needed !== undefined && capabilities[needed] === undefined;
  });
  if (missing.length > 0) {
    visit.note("contract_drift", { evidence: `in the contract and not announced: ${missing.join(", ")}` });
  }
}

/**
 * Checks what the server declares of the context contract, if anything.
 * @returns the declaration, where there is one
 * @throws Diagnosis when the contract is not believed: nothing it says then matters
 */
export function checkContract(visit: Visit, session: Session): ContractDeclaration | undefined {
  const given = announced(session);
  if (given === undefined) {
    if (visit.options.contractExpected === true)
      visit.fail("contract_missing", { evidence: `no ${CONTRACT_EXTENSION}` });
    return undefined;
  }
  let declaration: ContractDeclaration;
  try {
    declaration = readDeclaration(given);
  } catch (error) {
    return visit.fail("contract_malformed", { evidence: messageOf(error) });
  }
  const { version, server_id } = declaration;
  const signature = checkSignature(visit, declaration);
  visit.facts.contract = {
    version: visit.shown(version, 40),
    serverId: visit.shown(server_id, 80),
    signature,
    required: requiredOf(declaration).map((name) => visit.shown(name, 80)),
  };
  if (!CONTRACT_VERSIONS.some((known) => known === version)) {
    visit.fail("contract_version", { evidence: `it declares ${version}; known are ${CONTRACT_VERSIONS.join(", ")}` });
  }
  const { fault } = surveySchema(declaration.context_schema);
  if (fault) visit.fail("contract_schema", { evidence: describeFault(fault) });
  const { contextSchema } = visit.options;
  const conflicts = contextSchema ? schemaConflicts(declaration.context_schema, contextSchema) : [];
  if (conflicts.length > 0) visit.note("contract_conflict", { evidence: `fields: ${conflicts.join(", ")}` });
  checkContext(visit, declaration);
  checkDrift(visit, declaration, session);
  return declaration;
}
