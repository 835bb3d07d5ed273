import { basename, dirname, resolve } from "node:path";
import { isRecord, type JsonObject } from "@tenon/core";
import { issuePath, LOG_LEVELS, wrongFields } from "@tenon/core/internal";
import {
  type ConfigDocument,
  expand,
  type KeyPath,
  parseDocumentText,
  readEnvironment,
} from "@tenon/core/internal/document";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import { serverSchema } from "../server-schema.ts";
import { createProblems, type Problems } from "./problems.ts";

/** A tool as the file says it. */
export interface ToolSettings {
  readonly name: string;
  readonly path: KeyPath;
  /** What stands at `function`; undefined where nothing usable does. */
  readonly reference: string | undefined;
  readonly input: JsonObject | undefined;
  readonly output: JsonObject | undefined;
  /** Options of `server.tool` that are the same here and there. */
  readonly about: Readonly<Record<string, unknown>>;
}

/** Everything a file says, variables replaced, as far as it is usable. */
export interface Settings {
  /** Where relative paths start. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly title: string | undefined;
  readonly instructions: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly endpoint: string;
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly passphrase?: string } | undefined;
  readonly corsOrigins: readonly string[] | undefined;
  readonly allowedHosts: readonly string[] | undefined;
  readonly trustedProxies: readonly string[] | undefined;
  readonly workers: number;
  readonly adminPort: number | undefined;
  readonly logLevel: string | undefined;
  readonly contract:
    | {
        readonly schema: JsonObject | undefined;
        readonly capabilities: readonly string[] | undefined;
        readonly keysEnv: string | undefined;
      }
    | undefined;
  readonly auth:
    | {
        readonly issuer: string;
        readonly audience: readonly string[];
        readonly jwksUrl: string;
        readonly requiredScopes: readonly string[] | undefined;
        readonly algorithms: readonly string[] | undefined;
      }
    | undefined;
  readonly tools: readonly ToolSettings[];
}

/** What the command line and the environment say; it wins over the file. */
export interface Overrides {
  readonly host?: string;
  readonly port?: number;
  readonly adminPort?: number;
  readonly workers?: number;
}

/** A file that was read: what it says, and what is wrong with it so far. */
export interface ServeFile {
  readonly file: string;
  readonly document: ConfigDocument;
  readonly settings: Settings;
  readonly problems: Problems;
}

type Parts = Readonly<Record<string, unknown>>;

const parts = (value: unknown): Parts => (isRecord(value) ? value : {});
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const document = (value: unknown): JsonObject | undefined => (isRecord(value) ? (value as JsonObject) : undefined); // it came from JSON or YAML

/** A number, also as the text that a variable is. */
function number(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : undefined;
}

/** A list, also as one text with commas, which is what a variable can hold. */
function list(value: unknown): readonly string[] | undefined {
  const items: readonly unknown[] | undefined =
    typeof value === "string" ? value.split(",") : Array.isArray(value) ? value : undefined;
  return items?.flatMap((item) => (typeof item === "string" && item.trim() !== "" ? [item.trim()] : []));
}

/** What people write without quotes and YAML reads as something else. */
const quotes = (message: string, value: unknown): string =>
  /^must be a string(?:,|$)/.test(message) && (typeof value === "number" || typeof value === "boolean")
    ? "; put it in quotes"
    : "";

/** What the patterns of the schema stand for; what they say is for programs. */
const MEANT: Readonly<Record<string, string>> = {
  port: "must be a port from 0 to 65535",
  admin_port: "must be a port from 0 to 65535",
  workers: "must be a whole number from 1",
  timeout_ms: "must be a whole number of milliseconds from 1",
  ssl: "must be true or false",
  path: "must begin with /",
  log_level: `must be one of ${LOG_LEVELS.join(", ")}`,
};

/** What may be shown: a value that a variable brought may be secret, and so is a password that stands in the file. */
function withoutSecrets(value: unknown): unknown {
  const { server, ...others } = parts(value);
  const { ssl_keyfile_password: _secret, ...rest } = parts(server);
  return { ...others, server: rest };
}

/** Holds the file against the published schema. */
function checkForm(source: ConfigDocument, value: unknown, problems: Problems): void {
  const compiled = schemaCheck(serverSchema());
  if (compiled.fault) throw new Error(compiled.fault.problem);
  const verdict = compiled.check(value);
  if (verdict.ok === true) return;
  if (verdict.ok === "stopped") {
    problems.add([], `could not be checked: ${verdict.reason}`);
    return;
  }
  const lines = wrongFields(verdict.issues, value, { whole: "the file", shown: withoutSecrets(source.value) });
  for (const [at, issue] of verdict.issues.entries()) {
    const path = (issue.path ?? []).map((part) => {
      const key = typeof part === "object" ? part.key : part;
      return typeof key === "number" ? key : String(key);
    });
    const line = lines[at]?.message ?? issue.message;
    const said = line.slice((issuePath(issue) || "the file").length + 2);
    const message = said.replace(/^.*must match pattern ".*?"(?=, got |$)/s, MEANT[String(path.at(-1))] ?? "$&");
    const found = path.reduce<unknown>((inner, key) => (inner as Parts | undefined)?.[key], value);
    const only = path.at(-1) === "type" && path[0] === "mcp" ? "; jwt is the only type there is" : "";
    problems.add(path, `${message}${only}${quotes(message, found)}`);
  }
}

/** `tenon.yaml` says nothing about the server; the folder it lies in does. */
function nameOf(file: string): string {
  const name = basename(file).replace(/\.\w+$/, "");
  const said = name === "tenon" || name === "" ? basename(dirname(resolve(file))) : name;
  return said.replace(/[^\w.-]+/g, "-") || "server";
}

function readTls(server: Parts, folder: string, problems: Problems): Settings["tls"] {
  const { ssl, ssl_certfile, ssl_keyfile, ssl_keyfile_password } = server;
  const [cert, key, passphrase] = [text(ssl_certfile), text(ssl_keyfile), text(ssl_keyfile_password)];
  const on = ssl === true || ssl === "true";
  const off = ssl === false || ssl === "false";
  if (off || problems.has(["server", "ssl"])) return undefined;
  for (const [name, given, other] of [
    ["ssl_certfile", cert, key],
    ["ssl_keyfile", key, cert],
  ] as const) {
    const missing = given === undefined && !problems.has(["server", name]) && (on || other !== undefined);
    if (missing) {
      const why = on ? "ssl is true" : "a certificate is of use with its private key only";
      problems.add(["server", name], `is missing, and ${why}; give the path of a PEM file`);
    }
  }
  if (cert === undefined || key === undefined) return undefined;
  return {
    certFile: resolve(folder, cert),
    keyFile: resolve(folder, key),
    ...(passphrase !== undefined && { passphrase }),
  };
}

/** An origin as browsers write it. */
function checkOrigins(origins: readonly string[] | undefined, problems: Problems): void {
  for (const [at, origin] of (origins ?? []).entries()) {
    const path = ["server", "cors_origins", at];
    if (origin === "*") {
      problems.add(
        path,
        'is "*", which would let every page that somebody visits call the tools; name the origins, such as https://desk.example',
      );
    } else if (!URL.canParse(origin) || new URL(origin).origin !== origin.toLowerCase()) {
      problems.add(
        path,
        `is ${JSON.stringify(origin)}, which is no origin; write scheme, host and port only, such as https://desk.example`,
      );
    }
  }
}

function readTool(name: string, value: unknown): ToolSettings {
  const tool = parts(value);
  const { description, title, annotations, scopes, idempotent, timeout_ms } = tool;
  const about = {
    description: text(description),
    title: text(title),
    annotations: isRecord(annotations) ? annotations : undefined,
    scopes: list(scopes),
    idempotent: typeof idempotent === "boolean" ? idempotent : undefined,
    timeoutMs: number(timeout_ms),
  };
  return {
    name,
    path: ["tools", name],
    reference: text(tool.function),
    input: document(tool.input_schema),
    output: document(tool.output_schema),
    about: Object.fromEntries(Object.entries(about).filter(([, one]) => one !== undefined)),
  };
}

function readAuth(mcp: Parts): Settings["auth"] {
  if (mcp.authentication === undefined) return undefined;
  const { issuer, audience, jwks_url, required_scopes, algorithms } = parts(mcp.authentication);
  return {
    issuer: text(issuer) ?? "",
    audience: list(audience) ?? [],
    jwksUrl: text(jwks_url) ?? "",
    requiredScopes: list(required_scopes),
    algorithms: list(algorithms),
  };
}

/**
 * Reads what `tenon serve` serves. What is wrong is in `problems`, all of it; only a text that is neither YAML nor JSON throws.
 * @throws ConfigError `invalid_config`
 */
export async function readServeFile(
  given: string,
  file: string,
  env: Readonly<Record<string, string | undefined>>,
  overrides: Overrides,
): Promise<ServeFile> {
  const source = parseDocumentText(given, file, undefined, "an object with tools");
  const problems = createProblems(source);
  const value = await expand([], source.value, (path, body) => {
    const [top] = path;
    if (top !== "server" && top !== "mcp" && top !== "tools") return ""; // other programs' parts have their own variables
    const found = readEnvironment(body, env);
    if (found && "value" in found) {
      if (!body.endsWith(`:-${found.value}`)) problems.hide(body, found.value); // a default stands in the file
      return found.value;
    }
    problems.add(
      path,
      found?.problem ??
        `uses \${${body}}, which is no variable; write \${NAME} or \${NAME:-default}, or $\${ for a plain \${`,
    );
    return "";
  });
  checkForm(source, value, problems);
  const { server: serverPart, mcp: mcpPart, tools } = parts(value);
  const server = parts(serverPart);
  const mcp = parts(mcpPart);
  const folder = dirname(resolve(file));
  for (const key of ["port", "admin_port"]) {
    if ((number(server[key]) ?? 0) > 65_535) problems.add(["server", key], `${MEANT.port}`);
  }
  const corsOrigins = list(server.cors_origins);
  checkOrigins(corsOrigins, problems);
  const { context_schema, capabilities, contract_keys_env } = mcp;
  const hasContract = [context_schema, capabilities, contract_keys_env].some((one) => one !== undefined);
  const settings: Settings = {
    folder,
    name: text(server.name) ?? nameOf(file),
    version: text(server.version) ?? "0.0.0",
    title: text(server.title),
    instructions: text(server.instructions),
    host: overrides.host ?? text(server.host) ?? "127.0.0.1",
    port: overrides.port ?? number(server.port) ?? 8000,
    endpoint: text(server.path) ?? "/mcp",
    tls: readTls(server, folder, problems),
    corsOrigins,
    allowedHosts: list(server.allowed_hosts),
    trustedProxies: list(server.trusted_proxies),
    workers: overrides.workers ?? number(server.workers) ?? 1,
    adminPort: overrides.adminPort ?? number(server.admin_port),
    logLevel: text(server.log_level),
    contract: hasContract
      ? { schema: document(context_schema), capabilities: list(capabilities), keysEnv: text(contract_keys_env) }
      : undefined,
    auth: readAuth(mcp),
    tools: Object.entries(parts(tools)).map(([name, tool]) => readTool(name, tool)),
  };
  return { file, document: source, settings, problems };
}
