import { createPrivateKey, X509Certificate } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { ConfigError, codeOf, messageOf } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { ServerLog } from "../log.ts";
import { followFiles, type Pace } from "./follow-files.ts";

interface TlsCommon {
  /** Opens an encrypted key. */
  passphrase?: string;
  /** Oldest version that is spoken. Default TLSv1.2. */
  minVersion?: "TLSv1.2" | "TLSv1.3";
}

/** Certificate and key as they are. */
export interface TlsPem extends TlsCommon {
  /** PEM: the server's certificate, then those of the authorities between it and the one that clients trust. */
  cert: string | Buffer;
  /** PEM of the certificate's private key. */
  key: string | Buffer;
}

/** Certificate and key in files, which are read again when they change. */
export interface TlsFiles extends TlsCommon {
  /** Path of a PEM file: the server's certificate, then those of the authorities between. */
  certFile: string;
  /** Path of the PEM file with the certificate's private key; may be the same file. */
  keyFile: string;
}

/** The certificate a server shows, and its private key: as files, or as PEM. */
export type TlsOptions = TlsPem | TlsFiles;

/** What a node HTTPS server is made with. */
type Context = Pick<SecureContextOptions, "cert" | "key" | "passphrase" | "minVersion">;

/** The certificate of a listening server. */
export interface ServerTls {
  readonly context: Context;
  /** Keeps `server` at what the files say. Returns what ends it. */
  follow(server: { setSecureContext(context: Context): void }, pace?: Pace): () => void;
}

/** A certificate and its key, with how messages call them. */
interface Pair {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  readonly called: { readonly cert: string; readonly key: string };
}

/** Bytes of a file; long chains have some ten thousand. */
const MAX_BYTES = 1024 * 1024;

function wrong(what: string, why: string, cause?: unknown): never {
  throw new ConfigError(`${what} ${why}`, { code: "tls", ...(cause !== undefined && { cause }) });
}

const READING: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
  ELOOP: "is a link that leads to itself",
};

/** @throws ConfigError naming the file and why it cannot be used */
async function readPem(path: string, what: string): Promise<Buffer> {
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    const stat = await file.stat();
    if (!stat.isFile()) wrong(what, "is no file");
    if (stat.size > MAX_BYTES) wrong(what, `has ${stat.size} bytes; expected PEM of at most ${MAX_BYTES}`);
    const bytes = Buffer.alloc(stat.size);
    // no more than was there when it was opened, should somebody be writing
    const { bytesRead } = await file.read(bytes, 0, stat.size, 0);
    return bytes.subarray(0, bytesRead);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = codeOf(error) ?? "";
    return wrong(what, READING[code] ?? `cannot be read (${code || String(error)})`, error);
  } finally {
    await file?.close();
  }
}

const textOf = (pem: string | Buffer): string => pem.toString();

function readCertificate({ cert, key, called }: Pair): X509Certificate {
  const text = textOf(cert);
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    const swapped = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) && textOf(key).includes("BEGIN CERTIFICATE");
    wrong(
      called.cert,
      swapped
        ? `holds the key and ${called.key} the certificate; swap them`
        : "is not a PEM certificate: expected a block that begins with -----BEGIN CERTIFICATE-----",
    );
  }
  try {
    return new X509Certificate(cert);
  } catch (error) {
    return wrong(called.cert, "holds a certificate that cannot be read; is it complete?", error);
  }
}

/** @throws ConfigError naming what is wrong with which of the two */
function checkPair(pair: Pair, passphrase: string | undefined): X509Certificate {
  const { key, called } = pair;
  const certificate = readCertificate(pair);
  const text = textOf(key);
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
    wrong(called.key, "is not a PEM private key: expected a block that begins with -----BEGIN PRIVATE KEY-----");
  }
  let privateKey: ReturnType<typeof createPrivateKey>;
  try {
    privateKey = createPrivateKey({ key, ...(passphrase !== undefined && { passphrase }) });
  } catch (error) {
    const locked = text.includes("ENCRYPTED");
    if (locked && passphrase === undefined) wrong(called.key, "is encrypted; give its tls.passphrase", error);
    return wrong(called.key, locked ? "does not open with tls.passphrase" : "holds a key that cannot be read", error);
  }
  if (!certificate.checkPrivateKey(privateKey)) {
    wrong(
      called.key,
      `does not belong to the first certificate of ${called.cert}; are both from the same issue, and is the server's own certificate the first?`,
    );
  }
  return certificate;
}

/** The pair as a server uses it. @throws ConfigError when OpenSSL refuses it, for example because a key is too short */
function contextOf(pair: Pair, { passphrase, minVersion = "TLSv1.2" }: TlsCommon): Context {
  const { cert, key } = pair;
  const context = { cert, key, minVersion, ...(passphrase !== undefined && { passphrase }) };
  try {
    createSecureContext(context);
  } catch (error) {
    wrong(pair.called.cert, `cannot be used: ${messageOf(error)}`, error);
  }
  return context;
}

function warnOfDates({ validFrom, validTo }: X509Certificate, { cert }: Pair["called"], log: ServerLog): void {
  if (Date.parse(validTo) < Date.now()) log("warning", `${cert} expired on ${validTo}; clients will refuse it`);
  if (Date.parse(validFrom) > Date.now())
    log("warning", `${cert} is valid from ${validFrom} only; is the clock right?`);
}

function checkTlsOptions(options: TlsOptions): void {
  const given: Record<string, unknown> = { ...options };
  checkOptions(given, ["cert", "key", "certFile", "keyFile", "passphrase", "minVersion"], "listen({ tls })");
  const has = (name: string): boolean => given[name] !== undefined;
  const pem = has("cert") && has("key") && !has("certFile") && !has("keyFile");
  const files = has("certFile") && has("keyFile") && !has("cert") && !has("key");
  if (!pem && !files) {
    const names = ["cert", "key", "certFile", "keyFile"].filter(has).join(" and ") || "none of them";
    wrong("listen({ tls })", `needs cert and key (PEM), or certFile and keyFile (paths), got ${names}`);
  }
  for (const name of files ? ["certFile", "keyFile"] : ["cert", "key"]) {
    const value = given[name];
    const fits = typeof value === "string" || (pem && Buffer.isBuffer(value));
    if (!fits) wrong(`tls.${name}`, `must be ${pem ? "PEM as text or a Buffer" : "a path"}, got ${typeof value}`);
  }
  if (has("passphrase") && typeof given.passphrase !== "string") wrong("tls.passphrase", "must be a text");
  if (has("minVersion") && given.minVersion !== "TLSv1.2" && given.minVersion !== "TLSv1.3") {
    wrong("tls.minVersion", `must be TLSv1.2 or TLSv1.3, got ${JSON.stringify(given.minVersion)}`);
  }
}

async function readFiles({ certFile, keyFile }: TlsFiles): Promise<Pair> {
  const called = { cert: `tls.certFile ${certFile}`, key: `tls.keyFile ${keyFile}` };
  return { cert: await readPem(certFile, called.cert), key: await readPem(keyFile, called.key), called };
}

/**
 * Reads and checks a server's certificate and key.
 * @throws ConfigError `code: "tls"` naming what cannot be used and why
 */
export async function openTls(options: TlsOptions, log: ServerLog): Promise<ServerTls> {
  checkTlsOptions(options);
  const fromFiles = "certFile" in options ? options : undefined;
  let current: Pair =
    "certFile" in options ? await readFiles(options) : { ...options, called: { cert: "tls.cert", key: "tls.key" } };
  warnOfDates(checkPair(current, options.passphrase), current.called, log);
  return {
    context: contextOf(current, options),
    follow(server, pace) {
      if (!fromFiles) return () => undefined;
      let failures = 0;
      const look = async (): Promise<boolean> => {
        try {
          const pair = await readFiles(fromFiles);
          const same =
            Buffer.from(pair.cert).equals(Buffer.from(current.cert)) && textOf(pair.key) === textOf(current.key);
          if (!same) {
            const certificate = checkPair(pair, options.passphrase);
            server.setSecureContext(contextOf(pair, options)); // connections that are open keep theirs
            current = pair;
            warnOfDates(certificate, pair.called, log);
            log("info", "the TLS certificate was replaced", { file: fromFiles.certFile, validTo: certificate.validTo });
          }
          failures = 0;
          return false;
        } catch (error) {
          failures += 1;
          // the first time it may be half written
          if (failures === 2) log("error", "the new TLS certificate cannot be used; the old one stays", { error });
          return failures === 1;
        }
      };
      return followFiles([fromFiles.certFile, fromFiles.keyFile], look, pace);
    },
  };
}
