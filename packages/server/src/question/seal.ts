import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { ConfigError, codeOf } from "@tenon/core";
import { digest } from "@tenon/core/internal";

/** Encrypts what a suspended call must remember, so that the client can carry it without reading or changing it. */
export interface Seal {
  /**
   * @param binding what the state belongs to (caller, method, name, arguments); opening needs the same
   * @param id the same for states that ask the same round again; default: a new one
   */
  close(state: unknown, binding: unknown, id?: string): Promise<string>;
  /**
   * Opens a state also after its time, and says so: whether it may still be used depends on whether it was answered in time.
   * @throws ProtocolError -32602 with `data.reason` `expired` (the caller may start again), `foreign` or `tampered`. A state
   * under a key that is not in the ring is `expired`: the key was replaced too early, or the process has a new one.
   */
  open(sealed: string, binding: unknown): Promise<{ id: string; state: unknown; expired: boolean }>;
}

/** Why a state was refused: only `expired` means that the caller may start again. */
export type RefusalReason = "expired" | "answered" | "foreign" | "tampered";

function parseKey(text: string): Uint8Array {
  const key = Buffer.from(text.trim(), "base64url");
  if (key.length === 32) return new Uint8Array(key);
  throw new ConfigError(
    `A state key must be 32 bytes as base64url (43 characters); got ${key.length} bytes. Make one with: ` +
      `node -p "require('crypto').randomBytes(32).toString('base64url')"`,
    { code: "state_key" },
  );
}

/** How a state is refused (-32602, `data.reason`). */
export const refuse = (reason: RefusalReason, message: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message, { reason });

/** The refusal of a state that was not answered in time. */
export const tooLate = (): ProtocolError =>
  refuse("expired", "The question can no longer be answered; send the call again without requestState");

/** The state was sealed with a key that is not in the ring. */
class UnknownKey extends Error {}

/**
 * A seal over a ring of keys (JWE, direct A256GCM), newest first: the first one closes, all of them open, so a key can be
 * replaced without losing the questions in flight.
 * @param keys 32 bytes each, base64url; empty makes a key that lives as long as this process
 * @param ttlMs milliseconds a question may wait for its answer
 */
export function createSeal(keys: readonly string[], ttlMs: number): Seal {
  const parsed = keys.map(parseKey);
  let made: { id: string; key: Uint8Array }[] | undefined;
  // made on first use: the first hash and the first random bytes cost a server on stdio milliseconds of its start
  const ring = (): { id: string; key: Uint8Array }[] => {
    made ??= (parsed.length > 0 ? parsed : [new Uint8Array(randomBytes(32))]).map((key) => ({
      id: digest(Buffer.from(key).toString("hex")).slice(0, 8),
      key,
    }));
    return made;
  };
  return {
    async close(state, binding, id = randomUUID()) {
      const [newest] = ring();
      if (!newest) throw new ConfigError("the key ring is empty", { code: "state_key" });
      const { EncryptJWT } = await import("jose"); // only a server that asks pays for loading it
      return new EncryptJWT({ s: state, b: digest(binding) })
        .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: newest.id })
        .setJti(id)
        .setExpirationTime(Math.ceil((Date.now() + ttlMs) / 1_000))
        .encrypt(newest.key);
    },
    async open(sealed, binding) {
      const { errors, jwtDecrypt } = await import("jose");
      let payload: Record<string, unknown>;
      let expired = false;
      try {
        const opened = await jwtDecrypt(
          sealed,
          (header) => {
            const found = ring().find((entry) => entry.id === header.kid);
            // the header is readable by anyone, so to say that its key is unknown tells nothing
            if (!found) throw new UnknownKey();
            return found.key;
          },
          { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] },
        );
        payload = opened.payload;
      } catch (error) {
        if (error instanceof UnknownKey) throw tooLate();
        if (!(error instanceof errors.JWTExpired)) {
          throw refuse("tampered", "The requestState was not made by this server, or was changed on the way");
        }
        payload = error.payload; // decrypted and authenticated: its time is judged last
        expired = true;
      }
      if (payload.b !== digest(binding)) {
        throw refuse("foreign", "The requestState belongs to another caller, tool or arguments");
      }
      return { id: String(payload.jti), state: payload.s, expired };
    },
  };
}

/** How long a key file may be empty: as long as the process that makes it is between opening and writing it. */
const EMPTY_MS = 1_000;

/**
 * Reads the key ring of a file, newest first, one key a line; makes the file (mode 0600) with one key when there is none.
 * Keep it with the data: a question asked before a restart can be answered only with the same key.
 * @throws ConfigError `code: "state_key"` for a malformed key, or a file that holds none
 */
export function openStateKeys(path: string): string[] {
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    try {
      writeFileSync(path, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
    } catch (error) {
      // another process made it between the look and the write: read that one
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
  for (const until = Date.now() + EMPTY_MS; ; ) {
    const lines = readFileSync(path, "utf8").split("\n");
    const keys = lines.map((line) => line.trim()).filter(Boolean);
    for (const key of keys) parseKey(key);
    if (keys.length > 0) return keys;
    if (Date.now() > until) {
      // going on with a key of this process alone would lose every question at the next start
      throw new ConfigError(`The key file ${path} holds no key; delete it, and a new one is made`, {
        code: "state_key",
      });
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); // a server that starts does nothing else yet
  }
}
