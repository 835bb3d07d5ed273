import { ConfigError, isRecord, type JsonObject, TenonError } from "@tenon/core";
import {
  anything,
  checkOptions,
  isSchema,
  jsonSchemaOf,
  kindOf,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  refuseOption,
} from "@tenon/core/internal";
import { openKeys, readContractKeys } from "@tenon/core/internal/contract-keys";
import type { ServerContract } from "../types/contracts.ts";

/** A function's answer is not known yet, and fields may be secret: the kind only. */
const context: OptionCheck = (value, where) => {
  if (typeof value === "function" || isRecord(value)) return;
  refuseOption(`${where} must be an object of fields, or a function that gives one, got ${kindOf(value)}`);
};

/** No message has a part of a key. */
const keys: OptionCheck = (value, where) => {
  try {
    if (typeof value === "string") readContractKeys(value);
    else openKeys(value as never); // it checks what it is given
  } catch (cause) {
    if (!(cause instanceof TenonError)) throw cause;
    throw new ConfigError(`${where}: ${cause.message}`, { code: cause.code, cause });
  }
};

const CONTRACT_OPTIONS: OptionChecks<ServerContract> = {
  keys,
  plain: oneOf("allow", "refuse"),
  schema: anything, // where it is read, below
  context,
};

/** The client's own schema as a document. @throws ConfigError `invalid_option` */
export function ownSchema({ schema }: ServerContract, where: string): JsonObject | undefined {
  if (schema === undefined) return undefined;
  const document: unknown = isSchema(schema) ? jsonSchemaOf(schema, "input", where) : schema;
  if (isRecord(document)) return document as JsonObject; // a JSON Schema document
  return refuseOption(`${where} must be a schema, or a JSON Schema document, got ${kindOf(document)}`);
}

/** Refuses a `contract` that would not be understood. @throws ConfigError */
export const checkContract: OptionCheck = (value, where) => {
  if (!isRecord(value))
    refuseOption(`${where} must be an object such as { keys, plain, context }, got ${kindOf(value)}`);
  const contract: ServerContract = value; // checked in the next line
  checkOptions(contract, CONTRACT_OPTIONS, where);
  ownSchema(contract, `${where}.schema`);
  if (contract.keys !== undefined && contract.plain !== undefined) {
    refuseOption(
      `${where} has keys and plain; with keys a server without a signed contract is always refused, so give one of the two`,
    );
  }
};
