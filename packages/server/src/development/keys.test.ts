import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { createSigningKey, loadSigningKey, publicJwks, publicPem, saveSigningKey } from "./index.ts";
import { SIGNING_ALGORITHMS } from "./keys.ts";

const home = mkdtempSync(join(tmpdir(), "tenon-keys-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;
const fresh = (): string => join(home, String(++folders), "signing-key.pem");
const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const refusal = async (work: () => unknown): Promise<{ code: string; message: string }> => {
  try {
    await work();
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("nothing was refused");
};

describe("a signing key", () => {
  it.each(SIGNING_ALGORITHMS)("for %s is the same after it was saved and loaded", async (algorithm) => {
    const key = await createSigningKey({ algorithm });
    const files = saveSigningKey(key, fresh());
    const loaded = await loadSigningKey(files.privateKey);
    expect(loaded.publicJwk).toEqual(key.publicJwk);
    expect(loaded.algorithm).toBe(algorithm);
    expect(JSON.parse(readFileSync(files.jwks, "utf8"))).toEqual(publicJwks(key));
    expect(readFileSync(files.publicKey, "utf8")).toBe(publicPem(key));
  });
  it("is for its owner only, and so is the directory it makes", async () => {
    const path = fresh();
    const files = saveSigningKey(await createSigningKey(), path);
    expect([mode(path), mode(join(path, ".."))]).toEqual(["600", "700"]);
    expect(mode(files.jwks)).toBe("644");
  });
  it("has no private half in what is published, printed or turned into JSON", async () => {
    const key = await createSigningKey();
    const { d } = key.privateKey.export({ format: "jwk" });
    expect(d).toMatch(/^[\w-]{43}$/);
    expect(Object.keys(key.publicJwk).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
    for (const shown of [inspect(key, { depth: 9, showHidden: true }), JSON.stringify([key, publicJwks(key)])]) {
      expect(shown).not.toContain(d);
      expect(shown).not.toContain("PRIVATE");
    }
  });
  it("is never overwritten, neither half", async () => {
    const path = fresh();
    const first = await createSigningKey();
    const files = saveSigningKey(first, path);
    expect((await refusal(async () => saveSigningKey(await createSigningKey(), path))).code).toBe("signing_key_exists");
    rmSync(path);
    const { code, message } = await refusal(async () => saveSigningKey(await createSigningKey(), path));
    expect(code).toBe("signing_key_exists");
    expect(message).toContain(files.publicKey);
    expect(JSON.parse(readFileSync(files.jwks, "utf8"))).toEqual(publicJwks(first));
  });
  it.each([0o644, 0o640, 0o604, 0o620])("is refused with mode %o, saying what to do", async (given) => {
    const path = fresh();
    saveSigningKey(await createSigningKey(), path);
    chmodSync(path, given);
    const { code, message } = await refusal(() => loadSigningKey(path));
    expect(code).toBe("signing_key_exposed");
    expect(message).toContain(`mode 0${given.toString(8)}`);
    expect(message).toContain(`chmod 600 ${path}`);
  });
  it("that does not exist is refused with the command that makes one", async () => {
    const { code, message } = await refusal(() => loadSigningKey(fresh()));
    expect(code).toBe("signing_key_missing");
    expect(message).toContain("tenon keys new");
  });
  it("cannot be one for HMAC", async () => {
    for (const algorithm of ["HS256", "none", "ES512"]) {
      // what a program without types may give
      expect((await refusal(() => createSigningKey({ algorithm: algorithm as "ES256" }))).code).toBe(
        "signing_algorithm",
      );
    }
  });
});

describe("a key file made elsewhere", () => {
  const write = (content: string): string => {
    const path = fresh();
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  const pem = (key: ReturnType<typeof generateKeyPairSync>["privateKey"], more = {}): string =>
    String(key.export({ type: "pkcs8", format: "pem", ...more }));

  it.each(["pkcs1", "pkcs8"] as const)("is taken when it is an RSA key in %s", async (type) => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 3072 });
    const path = write(String(privateKey.export({ type, format: "pem" })));
    expect((await loadSigningKey(path)).algorithm).toBe("RS256");
  });
  it.each([
    ["a curve that is not P-256", () => pem(generateKeyPairSync("ec", { namedCurve: "secp384r1" }).privateKey)],
    ["a short RSA key", () => pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey)],
    ["a key for agreement, not for signing", () => pem(generateKeyPairSync("x25519").privateKey)],
    [
      "an encrypted key",
      () => pem(generateKeyPairSync("ed25519").privateKey, { cipher: "aes-256-cbc", passphrase: "secret" }),
    ],
    [
      "only the public half",
      () => String(generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" })),
    ],
    ["nothing", () => ""],
    ["something else", () => "hunter2hunter2"],
    ["too much", () => "x".repeat(65_537)],
  ])("is refused when it holds %s, without repeating it", async (_, make) => {
    const content = make();
    const { code, message } = await refusal(() => loadSigningKey(write(content)));
    expect(code).toBe("signing_key");
    expect(message.length).toBeLessThan(400);
    if (content.length > 4) expect(message).not.toContain(content.slice(0, 12));
  });
  it("is refused when it is a directory", async () => {
    const path = fresh();
    mkdirSync(path, { recursive: true, mode: 0o700 });
    expect((await refusal(() => loadSigningKey(path))).code).toBe("signing_key");
  });
});
