import { ContractError, type JsonObject, messageOf } from "@tenon/core";
import type * as Core from "@tenon/core/contract";
import type { ContractDeclaration, KeyRing } from "@tenon/core/contract";
import type { ServerContract } from "../types/contracts.ts";
import { ownSchema } from "./options.ts";
import type { Step } from "./steps.ts";

let core: Promise<typeof Core> | undefined;

/** The contract's words and checks, loaded with the first contract: they bring a compiler, and a client must start fast. */
export function loadContract(): Promise<typeof Core> {
  core ??= import("@tenon/core/contract");
  return core;
}

/** What a client wants of a server's contract, ready for use. */
export interface Terms {
  readonly server: string;
  readonly ring: KeyRing | undefined;
  /** Whether the server may be used without a contract. */
  readonly plain: boolean;
  readonly schema: JsonObject | undefined;
}

/** The terms of a configuration, which was checked. */
export function termsOf(
  { createKeyRing, readContractKeys }: typeof Core,
  server: string,
  given: ServerContract,
): Terms {
  const { keys, plain = "allow" } = given;
  const ring = keys === undefined ? undefined : createKeyRing(typeof keys === "string" ? readContractKeys(keys) : keys);
  return { server, ring, plain: ring === undefined && plain === "allow", schema: ownSchema(given, "contract.schema") };
}

/** What comes of an answer at one step. */
export type Judgement =
  /** Without a declaration the server is used plainly. */
  | { readonly kind: "accepted"; readonly declaration: ContractDeclaration | undefined }
  /** `holds`: the same answer may do for a later step, and asking again would give no other. */
  | { readonly kind: "refused"; readonly reason: string; readonly holds: boolean }
  /** No step after this one can be better. */
  | { readonly kind: "final"; readonly error: ContractError };

function refusal(server: string, code: string, message: string, data: object): Judgement {
  const error = new ContractError(`server "${server}": ${message}. Nothing was sent`, {
    code,
    server,
    maybeExecuted: false,
    data,
  });
  return { kind: "final", error };
}

/**
 * Whether what a server announced will do.
 * @param announced what stands under the extension's id; undefined where nothing does
 */
export function judge(
  { CONTRACT_VERSIONS, readDeclaration, schemaConflicts, verifyDeclaration }: typeof Core,
  { server, ring, schema }: Terms,
  step: Step,
  announced: unknown,
): Judgement {
  if (announced === undefined) {
    if (ring) {
      const todo = "it announces no contract, and this client has keys for one";
      return refusal(server, "signature", `${todo}. Give the server its keys, or take them out here`, {
        reason: "unsigned",
      });
    }
    if (step.version === undefined) return { kind: "accepted", declaration: undefined };
    return { kind: "refused", reason: "the server announces no contract", holds: true };
  }
  let declaration: ContractDeclaration;
  try {
    declaration = readDeclaration(announced);
    if (ring) verifyDeclaration(declaration, ring);
  } catch (error) {
    if (!(error instanceof ContractError)) throw error;
    if (ring) return refusal(server, error.code, error.message, Object(error.data));
    if (step.version === undefined) return { kind: "accepted", declaration: undefined };
    return { kind: "refused", reason: messageOf(error), holds: false };
  }
  const { version } = declaration;
  const known = CONTRACT_VERSIONS.some((one) => one === version);
  if (step.version === undefined && !known) return { kind: "accepted", declaration: undefined };
  if (step.version !== undefined && step.version !== version) {
    return { kind: "refused", reason: `the server declares ${JSON.stringify(version)}`, holds: known };
  }
  const fields = schema ? schemaConflicts(declaration.context_schema, schema) : [];
  if (fields.length > 0) {
    const what = `its contract and this client's schema declare ${fields.join(", ")} with different types`;
    return refusal(server, "schema_conflict", `${what}; take over the server's`, { fields });
  }
  return { kind: "accepted", declaration };
}
