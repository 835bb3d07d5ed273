import { ConfigError, type JsonObject } from "@tenon/core";
import { digest, jsonSize } from "@tenon/core/internal";

/** Whose context it is. */
export interface ContextKey {
  /** Name of the server that accepted it. */
  readonly server: string;
  /** Who sent it, as one text that says nothing of them, such as a digest. */
  readonly owner: string;
  /** The session it belongs to. */
  readonly session: string;
}

/** The last context of a session. */
export interface KeptContext {
  /** As it was put. */
  readonly context: JsonObject;
  /** Milliseconds since 1970 at which it is forgotten. */
  readonly expiresAt: number;
}

/** The last context that a server accepted in each session of each caller. */
export interface ContextStore {
  /** Whether other processes see what is kept here. */
  readonly shared: boolean;
  /**
   * Keeps a context instead of the one before.
   * @param ttlMs milliseconds from now until it is forgotten
   * @throws ConfigError `code: "context"` for a key or a context that is too large
   */
  put(key: ContextKey, context: JsonObject, ttlMs: number): Promise<void>;
  /** Looks it up. @returns undefined for what was never kept, has expired, or belongs to another owner */
  get(key: ContextKey): Promise<KeptContext | undefined>;
  /** Deletes what has expired. @returns how many */
  sweep(): Promise<number>;
  /** Ends this store. */
  close(): Promise<void>;
}

const MAX_KEY_CHARS = 1_024;
const MAX_CONTEXT_BYTES = 64 * 1024;

/** A key as a row is found by: of one length, and it tells nothing of whose it is. */
export function contextRow({ server, owner, session }: ContextKey): string {
  for (const [name, value] of Object.entries({ server, owner, session })) {
    if (typeof value === "string" && value !== "" && value.length <= MAX_KEY_CHARS) continue;
    throw new ConfigError(`A context's ${name} must be a text of 1 to ${MAX_KEY_CHARS} characters`, {
      code: "context",
    });
  }
  return digest([server, owner, session]);
}

/** @throws ConfigError `code: "context"` for one that is too large */
export function contextText(context: JsonObject): string {
  if (jsonSize(context, MAX_CONTEXT_BYTES) > MAX_CONTEXT_BYTES) {
    throw new ConfigError(`A context of more than ${MAX_CONTEXT_BYTES} bytes is not kept`, { code: "context" });
  }
  return JSON.stringify(context);
}
