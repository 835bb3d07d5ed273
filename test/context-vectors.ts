// Writes docs/extensions/context-vectors.json: what an implementation of the context contract in any language must agree with.
// `npm run vectors`.
import { createHmac } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { JsonObject } from "@tenon/core";
import {
  type ContractDeclaration,
  type ContractKey,
  contextFault,
  createKeyRing,
  publicContractKey,
  signedBytes,
  writeContractKeys,
} from "@tenon/core/contract";
import { canonicalJson } from "@tenon/core/internal";

/** Where the vectors are. */
export const VECTORS_FILE = join(
  dirname(dirname(fileURLToPath(import.meta.url))),
  "docs/extensions/context-vectors.json",
);

const bytes = (from: number): string =>
  Buffer.from(Array.from({ length: 32 }, (_, i) => from + i)).toString("base64url");
const hex = (text: string): string => Buffer.from(text, "hex").toString("base64url");

const ROTATION = "2026-12-01T00:00:00.000Z";
/** The keys, by the names the vectors call them. The Ed25519 keys are those of RFC 8032, 7.1, tests 1 and 2. */
const KEYS = {
  shared: { kid: "2026-11", alg: "HS256", secret: bytes(0) },
  "next shared": { kid: "2026-12", alg: "HS256", secret: bytes(32), activeFrom: ROTATION },
  pair: {
    kid: "pair-1",
    alg: "EdDSA",
    privateKey: hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"),
  },
  "next pair": {
    kid: "pair-2",
    alg: "EdDSA",
    privateKey: hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"),
    activeFrom: ROTATION,
  },
} as const satisfies Record<string, ContractKey>;

const SCHEMA: JsonObject = {
  type: "object",
  properties: {
    user_id: { type: "string" },
    session_id: { type: "string" },
    amount: { type: "number", minimum: 0 },
    count: { type: "integer" },
    department: { enum: ["sales", "support", null] },
    request_id: { type: "string", pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$" },
    order: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  },
  required: ["user_id", "session_id"],
};

const PLAIN: Omit<ContractDeclaration, "signature" | "next_rotation_time"> = {
  version: "0.4.2",
  server_id: "orders",
  capabilities: ["tools.list", "tools.execute", "contexts.get"],
  context_schema: SCHEMA,
};
const SAID: typeof PLAIN = {
  ...PLAIN,
  version: "0.4.1",
  server_id: "订单-é-😀",
  capabilities: [],
  context_schema: { type: "object", properties: { "\u20ac": {}, "\r": {}, "1": {}, "\ufb33": {}, "😀": {} } },
  authentication: { type: "bearer", issuers: ["https://login.example"], weight: 1e21, part: -0 },
};

/** RFC 8785, and what else is easily done in another way. As text: not every number or key survives another parser. */
const CANONICAL: readonly [name: string, json: string][] = [
  [
    "RFC 8785, 3.2.2",
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  ],
  [
    "RFC 8785, 3.2.3: keys by UTF-16 code units",
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
  ],
  ["integers beside other keys", '{"b":1,"10":2,"9":3,"-1":4,"":5}'],
  ["minus zero", "[-0,-0.0,0]"],
  [
    "where exponents begin",
    "[1e20,1e21,123456789012345680000,0.000001,0.0000001,1.5e300,5e-324,1.7976931348623157e308]",
  ],
  ["integers at the edge of a double", "[9007199254740991,9007199254740993,-9007199254740992]"],
  ["escapes", '"\\b\\t\\n\\f\\r\\u0000\\u001f\\u007f\\u2028\\ud7ff\\ue000"'],
  ["a key that languages treat specially", '{"__proto__":{"x":1},"constructor":2,"toString":3}'],
  ["nothing", '{"a":[],"b":{},"c":"","d":null}'],
  ["a date and a UUID are texts", '{"at":"2026-11-30T23:59:59.999Z","id":"F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"}'],
  ["no normalisation of Unicode", '["\\u00e9","e\\u0301"]'],
];

/** What has no canonical form: half a surrogate pair is no text. */
const REFUSED: readonly [name: string, json: string][] = [
  ["half a surrogate pair in a text", '{"a":"\\ud800"}'],
  ["half a surrogate pair in a key", '{"\\udc00":1}'],
  ["halves in the wrong order", '["\\ude00\\ud83d"]'],
];

type KeyName = keyof typeof KEYS;
const NOW = "2026-11-30T12:00:00.000Z";
const at = (time: string): number => Date.parse(time);

function signed(key: KeyName, said: typeof PLAIN, now = NOW): ContractDeclaration {
  const others: readonly ContractKey[] =
    key === "shared" ? [KEYS["next shared"]] : key === "pair" ? [KEYS["next pair"]] : [];
  return createKeyRing([KEYS[key], ...others], at("2026-11-01T00:00:00Z")).sign(said, at(now));
}

function declarations() {
  const cases: readonly [name: string, key: KeyName, said: typeof PLAIN, now: string][] = [
    ["HMAC-SHA-256, before the next key", "shared", PLAIN, NOW],
    ["HMAC-SHA-256, by the next key", "next shared", PLAIN, ROTATION],
    ["Ed25519, with authentication, Unicode and numbers", "pair", SAID, NOW],
    ["Ed25519, by the next key", "next pair", PLAIN, ROTATION],
  ];
  return cases.map(([name, key, said, now]) => {
    const declaration = signed(key, said, now);
    return { name, key, now, declaration, canonical: signedBytes(declaration).toString() };
  });
}

/** Declarations as they arrive, and what a client finds that holds `keys`. */
function verifications() {
  const good = signed("shared", PLAIN);
  const pair = signed("pair", PLAIN);
  const { signature: _, ...unsigned } = good;
  const withValue = (value: string): ContractDeclaration => ({
    ...good,
    signature: { alg: "HS256", kid: "2026-11", value },
  });
  const both: readonly KeyName[] = ["shared", "next shared"];
  const pairs: readonly KeyName[] = ["pair", "next pair"];
  const cases: readonly [name: string, keys: readonly KeyName[], now: string, ContractDeclaration][] = [
    ["right, HMAC-SHA-256", both, NOW, good],
    ["right, Ed25519", pairs, NOW, pair],
    ["right, by the next key although this clock is behind", both, NOW, signed("next shared", PLAIN, ROTATION)],
    ["right, five minutes after the rotation", both, "2026-12-01T00:05:00.000Z", good],
    ["a millisecond later", both, "2026-12-01T00:05:00.001Z", good],
    ["a capability was added", both, NOW, { ...good, capabilities: [...good.capabilities, "prompts.get"] }],
    ["a capability was taken away", both, NOW, { ...good, capabilities: good.capabilities.slice(1) }],
    ["capabilities in another order", both, NOW, { ...good, capabilities: good.capabilities.toReversed() }],
    ["another server", both, NOW, { ...good, server_id: "orders2" }],
    ["another version", both, NOW, { ...good, version: "0.4.1" }],
    ["a field is not required any more", both, NOW, { ...good, context_schema: { ...SCHEMA, required: ["user_id"] } }],
    ["another way to sign in", both, NOW, { ...good, authentication: { type: "none" } }],
    ["it lasts longer", both, NOW, { ...good, next_rotation_time: "2030-01-01T00:00:00.000Z" }],
    [
      "one bit of the signature",
      both,
      NOW,
      withValue(`${good.signature?.value.startsWith("A") ? "B" : "A"}${good.signature?.value.slice(1)}`),
    ],
    ["half of the signature", both, NOW, withValue(String(good.signature?.value.slice(0, 21)))],
    ["an empty signature", both, NOW, withValue("")],
    ["no signature", both, NOW, unsigned],
    ["a key that is not there", ["next shared"], NOW, good],
    [
      "the other key's kid",
      both,
      NOW,
      { ...good, signature: { ...withValue(String(good.signature?.value)).signature, kid: "2026-12" } as never },
    ],
    [
      "another algorithm than the key's",
      pairs,
      NOW,
      { ...pair, signature: { alg: "HS256", kid: "pair-1", value: String(pair.signature?.value) } },
    ],
  ];
  return cases.map(([name, keys, now, declaration]) => {
    const ring = createKeyRing(keys.map((key) => publicContractKey(KEYS[key])));
    return { name, keys, now, declaration, fault: ring.faultOf(declaration, at(now)) ?? null };
  });
}

/** Contexts and what is wrong with them by the schema above. As text: how a number is written is what some of them are about. */
function contexts() {
  const good = { user_id: "alice", session_id: "s-1" };
  const withField = (field: string): string => `${JSON.stringify(good).slice(0, -1)},${field}}`;
  const cases: readonly [name: string, context: unknown][] = [
    ["all that is required", good],
    ["more than the schema knows", { ...good, trace: { id: 1 } }],
    [
      "everything",
      {
        ...good,
        amount: 0.5,
        count: 3,
        department: "sales",
        order: { id: "o" },
        request_id: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
      },
    ],
    ["a null that the schema allows", { ...good, department: null }],
    ["no field at all", {}],
    ["the first missing field is named", { session_id: "s-1" }],
    ["required means not null", { ...good, user_id: null }],
    ["required means not empty", { ...good, session_id: "" }],
    ["a blank is not empty", { ...good, user_id: " " }],
    ["missing goes before wrong", { user_id: 7 }],
    ["a number for a text", { ...good, user_id: 7 }],
    ["a text for a number: nothing is converted", { ...good, amount: "0.5" }],
    ["a number below the least", { ...good, amount: -1 }],
    ["a fraction for an integer", { ...good, count: 3.5 }],
    ["a word that is not in the list", { ...good, department: "it" }],
    [
      "a UUID in capitals where the pattern wants small letters",
      { ...good, request_id: "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6" },
    ],
    ["a field that is missing further inside", { ...good, order: {} }],
    ["a list", ["alice"]],
    ["a text", "alice"],
    ["null", null],
  ];
  const texts: readonly [name: string, json: string][] = [
    ["a whole number written as 3.0 is an integer", withField('"count":3.0')],
    ["a number with an exponent may be one as well", withField('"count":3e2')],
    ["minus zero is not below zero", withField('"amount":-0')],
    ["a number that is larger than any", withField('"amount":1e999')],
    ["such a number in a field that the schema does not name", withField('"trace":{"at":-1e999}')],
  ];
  const all = [...cases.map(([name, context]) => [name, JSON.stringify(context)] as const), ...texts];
  return all.map(([name, json]) => {
    const fault = contextFault(SCHEMA, JSON.parse(json));
    return { name, json, fault: fault ? { reason: fault.reason, field: fault.field } : null };
  });
}

/** What the compatibility endpoint signs for clients that have a plain secret. */
function handshakes() {
  const { server_id, version, capabilities, context_schema } = PLAIN;
  const { server_id: unicode } = SAID;
  const cases: readonly [name: string, secret: string, fields: JsonObject][] = [
    [
      "a plain secret",
      "a plain secret that is long enough for HMAC",
      { server_id, version, capabilities: [...capabilities], context_schema },
    ],
    [
      "a secret that is not ASCII",
      "密钥-é-密钥-é-密钥-é-密钥-é",
      { server_id: unicode, version, capabilities: [...capabilities], context_schema },
    ],
  ];
  return cases.map(([name, secret, fields]) => {
    const mac = createHmac("sha256", secret).update(canonicalJson(fields)).digest("hex");
    return { name, secret, fields, signature: `sha256-hmac:${mac}` };
  });
}

/** The whole file. */
export function contextVectors(): string {
  const publicKeys = Object.entries(KEYS).map(([name, key]) => {
    const half = publicContractKey(key);
    const text = { server: writeContractKeys([key]), client: writeContractKeys([half]) };
    return { name, ...key, ...("publicKey" in half && { publicKey: half.publicKey }), text };
  });
  const vectors = {
    about:
      "Test vectors of the extension dev.tenon/context; see context.md beside this file. The keys are public: never use them.",
    keys: publicKeys,
    canonical: CANONICAL.map(([name, json]) => ({ name, json, canonical: canonicalJson(JSON.parse(json)) })),
    refused: REFUSED.map(([name, json]) => ({ name, json })),
    declarations: declarations(),
    verifications: verifications(),
    schema: SCHEMA,
    contexts: contexts(),
    handshakes: handshakes(),
  };
  return `${JSON.stringify(vectors, undefined, 2)}\n`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  mkdirSync(dirname(VECTORS_FILE), { recursive: true });
  writeFileSync(VECTORS_FILE, contextVectors());
}
