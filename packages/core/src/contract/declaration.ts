import { ContractError } from "../errors.ts";
import { isRecord, type JsonObject, jsonSize } from "../json.ts";

/** The extension's id: its key among a server's capabilities, and the key of `_meta` under which a request carries its context. */
export const CONTRACT_EXTENSION = "dev.tenon/context";

/** Versions of the contract, newest first. 0.4.1 knows no `expires_at` in the answer of `contexts/get`. */
export const CONTRACT_VERSIONS = ["0.4.2", "0.4.1"] as const;
/** One of the versions of the contract. */
export type ContractVersion = (typeof CONTRACT_VERSIONS)[number];

/** What a contract can allow, by the methods of the protocol that need it. */
export const CAPABILITY_OF = {
  "tools/list": "tools.list",
  "tools/call": "tools.execute",
  "resources/list": "resources.list",
  "resources/templates/list": "resources.list",
  "resources/read": "resources.read",
  "prompts/list": "prompts.list",
  "prompts/get": "prompts.get",
  "completion/complete": "completion.complete",
  "contexts/get": "contexts.get",
} as const;
/** One of the capabilities that the protocol's methods need. */
export type ContractCapability = (typeof CAPABILITY_OF)[keyof typeof CAPABILITY_OF];

/** Algorithms of a signature: HMAC-SHA-256 with a shared secret, or Ed25519 with a key pair. */
export const SIGNATURE_ALGORITHMS = ["HS256", "EdDSA"] as const;
/** One of the algorithms of a signature. */
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

/** Who vouches for a declaration. */
export interface ContractSignature {
  readonly alg: SignatureAlgorithm;
  /** Which of the two live keys. */
  readonly kid: string;
  /** base64url without padding. */
  readonly value: string;
}

/** What a server announces: which context it wants with every request, and what may be asked of it. */
export interface ContractDeclaration {
  /** Version of the contract. */
  readonly version: string;
  readonly server_id: string;
  /** Such as `"tools.execute"`; what is not here must not be called, even if the server would answer. */
  readonly capabilities: readonly string[];
  /** JSON Schema of the context. */
  readonly context_schema: JsonObject;
  /** How callers prove who they are, such as `{ type: "jwt", issuer, audience }`; never a secret. */
  readonly authentication?: JsonObject;
  readonly signature?: ContractSignature;
  /** ISO 8601: when the next key becomes active; the declaration counts until then. */
  readonly next_rotation_time?: string;
}

const MAX_CAPABILITIES = 256;
/** Characters of a version, of a server's name for itself, and of a capability. */
const MAX_CHARS = { version: 32, server_id: 256, capability: 128 };
/** Bytes of a whole declaration as JSON. */
const MAX_BYTES = 65_536;
/** What is signed is walked, so it must have an end that does not depend on who sent it. */
const MAX_LEVELS = 128;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

function malformed(field: string, wanted: string): never {
  throw new ContractError(`The server's contract is malformed: ${field} must be ${wanted}`, {
    code: "malformed_contract",
    maybeExecuted: false,
    data: { field },
  });
}

function readSignature(value: unknown): ContractSignature {
  if (!isRecord(value)) return malformed("signature", "an object { alg, kid, value }");
  const alg = SIGNATURE_ALGORITHMS.find((known) => known === value.alg);
  if (!alg) return malformed("signature.alg", `one of ${SIGNATURE_ALGORITHMS.join(", ")}`);
  if (typeof value.kid !== "string" || typeof value.value !== "string") {
    return malformed("signature", "an object { alg, kid, value } of texts");
  }
  return { alg, kid: value.kid, value: value.value };
}

/**
 * The declaration in what a server announced. Fields it does not know are left out, and are not signed either.
 * @throws ContractError `code: "malformed_contract"`, naming the field
 */
export function readDeclaration(value: unknown): ContractDeclaration {
  if (!isRecord(value)) return malformed(CONTRACT_EXTENSION, "an object");
  if (jsonSize(value, MAX_BYTES) > MAX_BYTES) return malformed(CONTRACT_EXTENSION, `at most ${MAX_BYTES} bytes`);
  const { version, server_id, capabilities, context_schema, authentication, signature, next_rotation_time } = value;
  const isText = (given: unknown, most: number): given is string => typeof given === "string" && given.length <= most;
  if (!isText(version, MAX_CHARS.version)) return malformed("version", 'a text such as "0.4.2"');
  if (!isText(server_id, MAX_CHARS.server_id) || server_id === "") {
    return malformed("server_id", `a text of 1 to ${MAX_CHARS.server_id} characters`);
  }
  const isList = Array.isArray(capabilities) && capabilities.every((one) => isText(one, MAX_CHARS.capability));
  if (!isList || capabilities.length > MAX_CAPABILITIES) {
    return malformed("capabilities", `a list of at most ${MAX_CAPABILITIES} texts`);
  }
  if (!isRecord(context_schema)) return malformed("context_schema", "a JSON Schema");
  for (const [field, part] of Object.entries({ context_schema, authentication })) {
    if (isDeeper(part, MAX_LEVELS)) return malformed(field, `of at most ${MAX_LEVELS} levels`);
  }
  if (authentication !== undefined && !isRecord(authentication)) return malformed("authentication", "an object");
  const isTime = typeof next_rotation_time === "string" && !Number.isNaN(Date.parse(next_rotation_time));
  if (next_rotation_time !== undefined && !isTime) return malformed("next_rotation_time", "a time as ISO 8601");
  return {
    version,
    server_id,
    capabilities,
    context_schema: context_schema as JsonObject, // it came as JSON
    ...(authentication !== undefined && { authentication: authentication as JsonObject }), // the same
    ...(signature !== undefined && { signature: readSignature(signature) }),
    ...(next_rotation_time !== undefined && { next_rotation_time: String(next_rotation_time) }),
  };
}
