import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { type JsonObject, messageOf, TenonError } from "@tenon/core";
import { CAPABILITY_OF, readContractKeys } from "@tenon/core/contract";
import { didYouMean } from "@tenon/core/internal";
import type { KeyPath } from "@tenon/core/internal/document";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import { createServer, defineTool, type ServerOptions, type TenonServer } from "@tenon/server";
import { jwt } from "@tenon/server/auth";
import { createFunctions, type ServedFunction } from "./functions.ts";
import { hostsOf } from "./hosts.ts";
import type { Problems } from "./problems.ts";
import type { ServeFile, Settings, ToolSettings } from "./settings.ts";

/** What the surroundings add to a file's server: where it keeps things, and how many serve it. */
export type Surroundings = Pick<ServerOptions, "store" | "stateKeys" | "replicas" | "tasks"> & {
  /** Whether clients of the older revision get sessions, which are one process's own. */
  readonly sessions: boolean;
};

/** Turns what a part of the making throws into a problem at its place. */
function tried<T>(
  problems: Problems,
  path: KeyPath | ((error: TenonError) => KeyPath),
  make: () => T,
  beginning = "",
): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof TenonError)) throw error;
    problems.add(typeof path === "function" ? path(error) : path, `${beginning}${error.message}`);
    return undefined;
  }
}

/** Environment variable that createServer looks for keys in. */
const DEFAULT_KEYS = "TENON_CONTRACT_KEYS";

/** One of these makes an object a schema that says something; others are names of fields, written one level too high. */
const SAYING = ["type", "properties", "$ref", "allOf", "anyOf", "oneOf", "enum", "const", "additionalProperties"];

/** Where a schema of the file does not compile, at the key inside it as far as the fault names one. */
function checkSchema(schema: JsonObject | undefined, path: KeyPath, problems: Problems): void {
  if (!schema || problems.has(path)) return;
  if (Object.keys(schema).length > 0 && !SAYING.some((keyword) => Object.hasOwn(schema, keyword))) {
    const names = Object.keys(schema).join(", ");
    problems.add(path, `has ${names}, and no type; expected JSON Schema: { type: object, properties: { … } }`);
    return;
  }
  const { fault } = schemaCheck(schema);
  if (!fault) return;
  const inner = fault.path.split(/[.[\]]+/).filter(Boolean);
  problems.add(
    [...path, ...inner.map((key) => (/^\d+$/.test(key) ? Number(key) : key))],
    `is no schema: ${fault.problem}`,
  );
}

/** A context is an object; createServer says so of its own option, which is not in the file. */
function checkContextSchema(schema: JsonObject | undefined, problems: Problems): void {
  checkSchema(schema, ["mcp", "context_schema"], problems);
  const type = schema?.type;
  if (type === undefined || type === "object" || problems.has(["mcp", "context_schema"])) return;
  problems.add(
    ["mcp", "context_schema", "type"],
    `is ${JSON.stringify(type)}; a context is an object with named fields: write type: object`,
  );
}

/** A file that TLS needs. */
function read(path: string, at: KeyPath, problems: Problems): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    problems.add(at, `names ${path}, which cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}

function checkTls({ tls }: Settings, problems: Problems): void {
  if (!tls) return;
  const cert = read(tls.certFile, ["server", "ssl_certfile"], problems);
  const key = read(tls.keyFile, ["server", "ssl_keyfile"], problems);
  if (!cert || !key) return;
  try {
    const { passphrase } = tls;
    createSecureContext({ cert, key, ...(passphrase !== undefined && { passphrase }) });
  } catch (error) {
    problems.add(
      ["server", "ssl_certfile"],
      `and ssl_keyfile cannot be used: ${messageOf(error)}; expected PEM, and the key of that certificate`,
    );
  }
}

/** Only tools come from a file, so only what tools need can be promised. */
function checkCapabilities({ contract }: Settings, problems: Problems): void {
  const offered = [CAPABILITY_OF["tools/list"], CAPABILITY_OF["tools/call"], CAPABILITY_OF["contexts/get"]];
  const known: readonly string[] = Object.values(CAPABILITY_OF);
  for (const [at, given] of (contract?.capabilities ?? []).entries()) {
    if (offered.some((one) => one === given)) continue;
    const near = didYouMean(given, offered);
    const why = known.includes(given) ? "which nothing in this file implements" : "which is no capability";
    problems.add(
      ["mcp", "capabilities", at],
      `is ${JSON.stringify(given)}, ${why}; ${near ? `did you mean "${near}"?` : `there are: ${offered.join(", ")}`}`,
    );
  }
}

/** The keys that sign the contract, looked at before anything is served; createServer finds the default variable itself. */
function contractKeys({ contract }: Settings, problems: Problems): string | undefined {
  if (!contract) return undefined;
  const { keysEnv } = contract;
  const variable = keysEnv ?? DEFAULT_KEYS;
  const keys = process.env[variable];
  const at = ["mcp", ...(keysEnv === undefined ? [] : ["contract_keys_env"])];
  if (keys) tried(problems, at, () => readContractKeys(keys), `what the variable ${variable} holds cannot be used: `);
  else if (keysEnv !== undefined)
    problems.add(at, `names ${keysEnv}, which is not set; put the keys there, or take the line out`);
  return keysEnv === undefined ? undefined : keys;
}

/** The server of a file, without its tools. */
function createHome({ settings, problems }: ServeFile, around: Surroundings): TenonServer | undefined {
  const { name, version, title, instructions, logLevel, corsOrigins, trustedProxies, contract, auth } = settings;
  const verifier =
    auth && !problems.has(["mcp", "authentication"])
      ? tried(problems, ["mcp", "authentication"], () =>
          jwt({
            issuer: auth.issuer,
            audience: auth.audience,
            jwksUrl: auth.jwksUrl,
            ...(auth.requiredScopes && { requiredScopes: auth.requiredScopes }),
            ...(auth.algorithms && { algorithms: auth.algorithms as never }), // jwt refuses others
          }),
        )
      : undefined;
  const keys = contractKeys(settings, problems);
  const { sessions, ...kept } = around;
  const options = {
    name,
    version,
    ...kept,
    ...(title !== undefined && { title }),
    ...(instructions !== undefined && { instructions }),
    ...(logLevel !== undefined && !problems.has(["server", "log_level"]) && { logLevel }),
    ...(verifier && { auth: verifier }),
    ...(contract &&
      !problems.has(["mcp"]) && {
        contract: {
          schema: contract.schema ?? { type: "object" },
          ...(contract.capabilities && { capabilities: contract.capabilities }),
          ...(keys !== undefined && { keys }),
        },
      }),
    http: {
      allowedHosts: hostsOf(settings),
      ...(corsOrigins && !problems.has(["server", "cors_origins"]) && { allowedOrigins: corsOrigins }),
      ...(trustedProxies && { trustedProxies }),
      ...(!sessions && { sessions: false as const }),
    },
  };
  const at = ({ message }: TenonError) => [/\bcontract\b/.test(message) ? "mcp" : "server"];
  return tried(problems, at, () => createServer(options as ServerOptions)); // it refuses what is none
}

function addTool(
  server: TenonServer,
  { name, path, input, output, about }: ToolSettings,
  run: ServedFunction,
  problems: Problems,
): void {
  const options = { ...about, ...(input && { input }), ...(output && { output }) };
  tried(problems, path, () => server.use(defineTool(name, options, run)));
}

/**
 * Makes the server of a file: loads its functions, compiles its schemas, looks at its certificate. What is wrong is added to the
 * problems of the file; undefined where there are some.
 */
export async function buildServer(file: ServeFile, around: Surroundings): Promise<TenonServer | undefined> {
  const { settings, problems } = file;
  checkTls(settings, problems);
  checkCapabilities(settings, problems);
  checkContextSchema(settings.contract?.schema, problems);
  const find = createFunctions(settings.folder);
  const server = createHome(file, around);
  // what is wrong with a tool is told although something else is
  const home = server ?? createServer({ name: settings.name, version: settings.version });
  for (const tool of settings.tools) {
    checkSchema(tool.input, [...tool.path, "input_schema"], problems);
    checkSchema(tool.output, [...tool.path, "output_schema"], problems);
    const at = [...tool.path, "function"];
    if (tool.reference === undefined || problems.has(at)) continue;
    const found = await find(tool.reference);
    if ("problem" in found) problems.add(at, found.problem);
    else if (!problems.has(tool.path)) addTool(home, tool, found.run, problems);
  }
  if (problems.all().length === 0) return server;
  await home.close();
  return undefined;
}
