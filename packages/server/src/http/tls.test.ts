import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ServerLog } from "../log.ts";
import { openTls, type TlsOptions } from "./tls.ts";

const fixture = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../test/fixtures/tls/${name}.pem`, import.meta.url)), "utf8");
const cert = fixture("first.cert");
const key = fixture("first.key");

let folder: string;
const lines: string[] = [];
const log: ServerLog = (level, message) => void lines.push(`${level}: ${message}`);
const fails = (options: TlsOptions): Promise<unknown> =>
  openTls(options, log).then(
    () => "opened",
    (error: unknown) => error,
  );
/** Writes what is given and opens it as files. */
function files(certText: string, keyText: string, more: object = {}): TlsOptions {
  const [certFile, keyFile] = [join(folder, "c.pem"), join(folder, "k.pem")];
  writeFileSync(certFile, certText);
  writeFileSync(keyFile, keyText);
  return { certFile, keyFile, ...more };
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tenon-tls-"));
  lines.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("certificate and key", () => {
  it.each<[string, () => TlsOptions]>([
    ["as PEM", () => ({ cert, key })],
    ["as buffers", () => ({ cert: Buffer.from(cert), key: Buffer.from(key) })],
    ["as files", () => files(cert, key)],
    ["in one file", () => ({ ...files(cert + key, ""), keyFile: join(folder, "c.pem") }) as TlsOptions], // two paths
    ["with a chain", () => files(cert + fixture("second.cert"), key)],
    ["with a passphrase", () => files(cert, fixture("first.locked.key"), { passphrase: "opensesame" })],
    ["for TLS 1.3 only", () => ({ cert, key, minVersion: "TLSv1.3" })],
  ])("are taken %s", async (_, options) => {
    const { context } = await openTls(options(), log);
    expect(context.minVersion).toBe(options().minVersion ?? "TLSv1.2");
    expect(lines).toEqual([]);
  });

  it.each<[string, () => TlsOptions, RegExp]>([
    [
      "no certificate file",
      () => ({ ...files(cert, key), certFile: join(folder, "no.pem") }),
      /^tls.certFile .*no.pem does not exist$/,
    ],
    [
      "no key file",
      () => ({ ...files(cert, key), keyFile: join(folder, "no", "k") }),
      /^tls.keyFile .*k does not exist$/,
    ],
    ["a folder", () => ({ ...files(cert, key), certFile: folder }), /^tls.certFile .* is no file$/],
    [
      "a huge file",
      () => files(cert + "x".repeat(1024 * 1024), key),
      /^tls.certFile .* has \d+ bytes; expected PEM of at most 1048576$/,
    ],
    [
      "a certificate that is none",
      () => files("hello", key),
      /^tls.certFile .*c.pem is not a PEM certificate: expected/,
    ],
    ["half a certificate", () => files(cert.slice(0, 300), key), /^tls.certFile .* cannot be read; is it complete\?$/],
    ["a key that is none", () => files(cert, "hello"), /^tls.keyFile .*k.pem is not a PEM private key: expected/],
    [
      "half a key",
      () => files(cert, `${key.slice(0, 100)}\n-----END PRIVATE KEY-----`),
      /^tls.keyFile .* holds a key that cannot be read$/,
    ],
    [
      "the two swapped",
      () => files(key, cert),
      /^tls.certFile .* holds the key and tls.keyFile .* the certificate; swap them$/,
    ],
    [
      "another key",
      () => files(cert, fixture("second.key")),
      /^tls.keyFile .* does not belong to the first certificate of tls.certFile/,
    ],
    [
      "a chain in the wrong order",
      () => files(fixture("second.cert") + cert, key),
      /the server's own certificate the first\?$/,
    ],
    [
      "an encrypted key",
      () => files(cert, fixture("first.locked.key")),
      /^tls.keyFile .* is encrypted; give its tls.passphrase$/,
    ],
    [
      "another passphrase",
      () => files(cert, fixture("first.locked.key"), { passphrase: "guess" }),
      /does not open with tls.passphrase$/,
    ],
    [
      "PEM that does not fit",
      () => ({ cert, key: fixture("second.key") }),
      /^tls.key does not belong to the first certificate of tls.cert;/,
    ],
    [
      "neither",
      () => ({}) as TlsOptions,
      /needs cert and key \(PEM\), or certFile and keyFile \(paths\), got none of them$/,
    ],
    ["half of each", () => ({ cert, keyFile: "k" }) as unknown as TlsOptions, /got cert and keyFile$/],
    [
      "all of them",
      () => ({ cert, key, certFile: "c", keyFile: "k" }) as TlsOptions,
      /got cert and key and certFile and keyFile$/,
    ],
    [
      "a path of another kind",
      () => ({ certFile: 7, keyFile: "k" }) as unknown as TlsOptions,
      /^tls.certFile must be a path, got number$/,
    ],
    [
      "an old version",
      () => ({ cert, key, minVersion: "TLSv1.1" }) as unknown as TlsOptions,
      /^tls.minVersion must be TLSv1.2 or TLSv1.3, got "TLSv1.1"$/,
    ],
    [
      "a passphrase of another kind",
      () => ({ cert, key, passphrase: 1 }) as unknown as TlsOptions,
      /^tls.passphrase must be a text$/,
    ],
  ])("are refused, naming which and why: %s", async (_, options, why) => {
    expect(await fails(options())).toMatchObject({
      name: "ConfigError",
      code: "tls",
      message: expect.stringMatching(why),
    });
  });
  it("are refused under a name that is none", async () => {
    expect(await fails({ certFil: "c", keyFile: "k" } as unknown as TlsOptions)).toMatchObject({
      code: "unknown_option",
      message: 'listen({ tls }) has no option "certFil"; did you mean "certFile"?',
    });
  });
  it.skipIf(process.getuid?.() === 0)("are refused when this user may not read them", async () => {
    const options = files(cert, key);
    chmodSync(join(folder, "k.pem"), 0);
    expect(String(await fails(options))).toMatch(/keyFile .* may not be read by this user$/);
  });
  it("say nothing of a key or a passphrase in an error", async () => {
    const error = (await fails(files(cert, fixture("first.locked.key"), { passphrase: "guess-me" }))) as Error;
    const secret = fixture("first.locked.key").split("\n")[2] ?? "";
    for (const text of [JSON.stringify(error), String(error.stack), String(error.cause)]) {
      expect(text).not.toContain("guess-me");
      expect(text).not.toContain(secret);
    }
  });
  it("are used with a warning when the certificate has expired", async () => {
    await openTls({ cert: fixture("expired.cert"), key: fixture("expired.key") }, log);
    expect(lines).toEqual([
      expect.stringMatching(/^warning: tls.cert expired on Jan .* 2021 GMT; clients will refuse it$/),
    ]);
  });
});

describe("certificate and key that change", () => {
  const SOON = { timeout: 15_000 };
  const QUICK = { pollMs: 20, settleMs: 1, retryMs: 5 };
  let end: () => void = () => undefined;
  afterEach(() => end());

  /** Follows files from the first pair on, and keeps what a server would have been given. */
  async function follow(pace = QUICK): Promise<string[]> {
    const used: string[] = [];
    const { follow } = await openTls(files(cert, key), log);
    const setSecureContext = (context: { key?: unknown }): void => void used.push(String(context.key));
    end = follow({ setSecureContext }, pace);
    return used;
  }
  const write = (name: "c" | "k", text: string): void => writeFileSync(join(folder, `${name}.pem`), text);

  it("are given to the server when both are there", async () => {
    const used = await follow();
    write("c", fixture("second.cert"));
    write("k", fixture("second.key"));
    await expect.poll(() => used, SOON).toEqual([fixture("second.key")]);
    await expect.poll(() => lines.at(-1), SOON).toBe("info: the TLS certificate was replaced");
  });
  it("are not given to it as long as they do not fit, which is said once", async () => {
    const used = await follow();
    write("c", fixture("second.cert"));
    await expect.poll(() => lines, SOON).toEqual(["error: the new TLS certificate cannot be used; the old one stays"]);
    await new Promise((resolve) => setTimeout(resolve, 200)); // many looks
    expect(lines).toHaveLength(1);
    expect(used).toEqual([]);
    write("k", fixture("second.key"));
    await expect.poll(() => used, SOON).toEqual([fixture("second.key")]);
    // the next mistake is said again
    write("c", "gone wrong");
    await expect.poll(() => lines.filter((line) => line.startsWith("error")), SOON).toHaveLength(2);
  });
  it("stay when their files vanish, and are read when they come back", async () => {
    const used = await follow();
    rmSync(folder, { recursive: true });
    await expect.poll(() => lines.length, SOON).toBe(1);
    expect(used).toEqual([]);
    mkdirSync(folder);
    write("c", fixture("second.cert"));
    write("k", fixture("second.key"));
    await expect.poll(() => used, SOON).toEqual([fixture("second.key")]);
  });
  it("are only half there for a moment: nothing is said of it", async () => {
    const used = await follow({ pollMs: 600_000, settleMs: 1, retryMs: 600_000 });
    write("c", fixture("second.cert"));
    await new Promise((resolve) => setTimeout(resolve, 100));
    write("k", fixture("second.key"));
    await expect.poll(() => used, SOON).toEqual([fixture("second.key")]);
    expect(lines).toEqual(["info: the TLS certificate was replaced"]);
  });
  it("say nothing when the same comes back", async () => {
    const used = await follow();
    write("c", cert);
    write("k", key);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([used, lines]).toEqual([[], []]);
  });
  it("as PEM do not change", async () => {
    const { follow: followPem } = await openTls({ cert, key }, log);
    end = followPem({ setSecureContext: () => expect.unreachable() });
    end();
  });
});
