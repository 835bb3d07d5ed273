import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { clientCredentials } from "./programs.ts";

describe("a program that signs with its key", () => {
  it.each([
    ["a path", "keys/nightly.pem"],
    ["half a PEM", "-----BEGIN PRIVATE KEY-----\nMC4CAQ"],
    [
      "an encrypted key",
      generateKeyPairSync("ed25519", {
        privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" },
        publicKeyEncoding: { type: "spki", format: "pem" },
      }).privateKey,
    ],
  ])("is refused %s instead of its key when it is configured, not when it signs", (_, privateKey) => {
    expect(() => clientCredentials({ clientId: "nightly", privateKey, algorithm: "EdDSA" })).toThrow(
      expect.objectContaining({ code: "invalid_option", message: expect.not.stringContaining(privateKey) }),
    );
  });
});
