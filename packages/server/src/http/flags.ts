import { parseArgs } from "node:util";
import { ConfigError, messageOf } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import type { ListenOptions } from "./listen.ts";

/** How a program serves when it is started; flags of its command line win over these. */
export interface RunOptions extends ListenOptions {
  /** Default `stdio`. */
  transport?: "stdio" | "http";
  /** One line on a terminal's stderr that says where the server listens. Default true. */
  banner?: boolean;
}

/** What `run` reads from the command line: whether a value follows, and what it is for. */
const FLAGS = {
  transport: { value: "stdio|http", what: "how to serve; default stdio" },
  port: { value: "number", what: "TCP port, 0 takes a free one; default 8000" },
  host: { value: "address", what: "address to bind; default 127.0.0.1" },
  path: { value: "/path", what: "path of the endpoint; default /mcp" },
  "unix-socket": { value: "file", what: "listen on a unix socket instead of a port" },
  "tls-cert": { value: "file", what: "PEM file of the certificate; read again when it changes" },
  "tls-key": { value: "file", what: "PEM file of its private key" },
  "no-banner": { value: undefined, what: "do not say where the server listens" },
  help: { value: undefined, what: "show this" },
} as const satisfies Record<string, { value: string | undefined; what: string }>;

type Flag = keyof typeof FLAGS;
const NAMES = Object.keys(FLAGS) as Flag[]; // the record has no other keys
/** Flags that say where to listen, and so nothing on stdio. */
const LISTENING: readonly Flag[] = ["port", "host", "path", "unix-socket", "tls-cert", "tls-key"];

function wrong(message: string, cause?: unknown): never {
  throw new ConfigError(message, { code: "flag", ...(cause !== undefined && { cause }) });
}

/** The flags, one a line. */
export function usage(): string {
  const heads = NAMES.map((name) => `--${name}${FLAGS[name].value ? ` <${FLAGS[name].value}>` : ""}`);
  const width = Math.max(...heads.map((head) => head.length));
  return NAMES.map((name, at) => `  ${heads[at]?.padEnd(width)}  ${FLAGS[name].what}\n`).join("");
}

function transportOf(word: string): "stdio" | "http" {
  if (word === "stdio" || word === "http") return word;
  if (word === "streamable-http") return "http";
  if (word === "sse") {
    throw new ConfigError("The transport sse is gone from the protocol; use http (streamable-http)", {
      code: "transport",
    });
  }
  const near = didYouMean(word, ["stdio", "http", "streamable-http"]);
  throw new ConfigError(`Unknown transport "${word}"; ${near ? `did you mean ${near}?` : "use stdio or http"}`, {
    code: "transport",
  });
}

/** What stands on the command line. @throws ConfigError naming the flag that nobody reads, and the nearest known one */
function parse(args: readonly string[]): Partial<Record<Flag, string | true>> {
  const unknown = args
    .filter((arg) => arg.startsWith("--"))
    .map((arg) => arg.slice(2).replace(/=.*$/s, ""))
    .find((name) => name !== "" && !NAMES.some((known) => known === name));
  if (unknown !== undefined) {
    const near = didYouMean(unknown, NAMES);
    wrong(`Unknown flag --${unknown}; ${near ? `did you mean --${near}?` : `known: --${NAMES.join(" --")}`}`);
  }
  try {
    const options = Object.fromEntries(
      NAMES.map((name) => [name, { type: FLAGS[name].value ? ("string" as const) : ("boolean" as const) }]),
    );
    // of no option are several values asked for
    return parseArgs({ args: [...args], options }).values;
  } catch (cause) {
    return wrong(`${messageOf(cause)}; known: --${NAMES.join(" --")}`, cause);
  }
}

/** Certificate and key go together, and take the place of those the program names. */
function tlsOf(certFile: string | undefined, keyFile: string | undefined, tls: ListenOptions["tls"]) {
  if (certFile === undefined && keyFile === undefined) return tls;
  if (certFile === undefined || keyFile === undefined) {
    const [given, missing] = certFile === undefined ? ["--tls-key", "--tls-cert"] : ["--tls-cert", "--tls-key"];
    return wrong(`${given} needs ${missing}: a certificate is of use with its private key only`);
  }
  const { passphrase, minVersion } = tls ?? {};
  return {
    certFile,
    keyFile,
    ...(passphrase !== undefined && { passphrase }),
    ...(minVersion !== undefined && { minVersion }),
  };
}

/**
 * How to serve: what flags say, then what the program says.
 * @returns `"help"` when that is all that was asked for
 * @throws ConfigError `code: "flag"` for a flag nobody reads, a value that is none, or flags that do not go together
 */
export function readFlags(args: readonly string[], options: RunOptions): RunOptions | "help" {
  const values = parse(args);
  if (values.help) return "help";
  const text = (name: Flag): string | undefined => {
    const value = values[name];
    if (value === "") wrong(`--${name} is empty; expected --${name} <${FLAGS[name].value}>`);
    return typeof value === "string" ? value : undefined;
  };
  const given = Object.fromEntries(NAMES.map((name) => [name, text(name)])) as Record<Flag, string | undefined>; // by the names
  const { port, host, path, "unix-socket": unixSocket } = given;
  if (port !== undefined && !(/^\d+$/.test(port) && Number(port) <= 65_535)) {
    wrong(`--port ${port} is not a port: expected a number from 0 to 65535`);
  }
  const transport = given.transport === undefined ? options.transport : transportOf(given.transport);
  const idle = transport === "http" ? undefined : LISTENING.find((name) => given[name] !== undefined);
  if (idle) wrong(`--${idle} says where to listen; it needs --transport http`);
  const tcp = port === undefined ? (host === undefined ? undefined : "--host") : "--port";
  if (unixSocket !== undefined && tcp) wrong(`--unix-socket and ${tcp} exclude each other; give one of them`);
  const { port: itsPort, host: itsHost, unixSocket: itsSocket, tls, ...rest } = options;
  const place =
    unixSocket !== undefined
      ? { unixSocket }
      : {
          port: port === undefined ? itsPort : Number(port),
          host: host ?? itsHost,
          unixSocket: tcp ? undefined : itsSocket,
        };
  const secured = tlsOf(given["tls-cert"], given["tls-key"], tls);
  const stated = Object.entries({ ...place, path, transport, tls: secured }).filter(([, value]) => value !== undefined);
  return { ...rest, ...Object.fromEntries(stated), ...(values["no-banner"] === true && { banner: false }) };
}
