import { AuthError, TenonError } from "@tenon/core";
import { hasScope, type Scopes } from "../definition/scopes.ts";
import type { Caller } from "../handler/context.ts";
import type { ServerLog } from "../log.ts";
import { readBearer } from "./bearer.ts";
import { type BearerError, challengedScopes } from "./challenge.ts";
import { refusalOf } from "./errors.ts";
import { createKeptTokens } from "./kept.ts";
import { callerWith } from "./token.ts";
import type { TokenVerifier, VerifiedToken } from "./types.ts";

/** A request that may go on. */
export interface Admitted {
  readonly caller: Caller;
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}
/** A request that may not. */
export interface Refused {
  readonly status: 400 | 401 | 403 | 503;
  readonly error: BearerError | undefined;
  /** For its caller: tells nothing of the token. */
  readonly message: string;
  /** What the challenge names. */
  readonly scopes: readonly string[];
}
export type Verdict = Admitted | Refused;

/** Decides which requests come in: the same one for all ways a request may take. */
export interface Gate {
  /**
   * At once when the token is known, else by a promise that never fails.
   * @param authorization all `Authorization` headers, joined by commas
   * @param address path and query, or all of the request's address
   */
  admit(authorization: string | undefined, address: string): Verdict | Promise<Verdict>;
  /** Calls `ended` once when the token has ended, is not taken any more or lost a scope. @returns stops watching */
  watch(admitted: Admitted, ended: () => void): () => void;
}

/** Milliseconds that a timer can wait at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** Least milliseconds between two looks at the token of an open stream. */
const LOOK_AGAIN_MS = 1_000;

/** @param known scopes this server uses: of the others a caller has, a refusal says nothing */
export function createGate(
  verifier: TokenVerifier,
  scopes: Scopes,
  log: ServerLog,
  known: () => ReadonlySet<string>,
): Gate {
  const tokens = createKeptTokens(verifier, log, (verified) => {
    const { caller } = verified;
    const all = scopes.implied(caller.scopes);
    return all === caller.scopes
      ? verified
      : { ...verified, caller: Object.freeze({ ...caller, scopes: Object.freeze(all) }) };
  });
  const first = verifier.requiredScopes.length > 0 ? verifier.requiredScopes : verifier.scopesSupported;

  const refuse = (
    status: Refused["status"],
    error: BearerError | undefined,
    message: string,
    named: readonly string[] = first,
  ): Refused => ({ status, error, message, scopes: named });

  function judge(verified: VerifiedToken, token: string): Verdict {
    const { caller, requiredScopes } = verified;
    for (const scope of requiredScopes) {
      if (hasScope(caller, scope)) continue;
      const message = `The token needs the scope ${requiredScopes.join(" ")}`;
      const named = challengedScopes(requiredScopes, caller.scopes, known());
      log("info", "request refused: insufficient_scope", { caller: caller.subject, scopes: requiredScopes });
      return refuse(403, "insufficient_scope", message, named);
    }
    return { caller: callerWith(caller, token), token, expiresAt: verified.expiresAt };
  }

  function failed(error: unknown): Refused {
    if (error instanceof AuthError && error.code === "invalid_token") {
      log("info", "request refused: invalid_token", { ...refusalOf(error) });
      return refuse(401, "invalid_token", error.message);
    }
    // neither yes nor no: a client that is told its token is bad would throw away a good one
    const level = error instanceof TenonError && error.code === "auth_unavailable" ? "warning" : "error";
    log(level, "a token could not be checked", { error });
    return refuse(503, undefined, "The token cannot be checked at the moment; try again later");
  }

  async function later(looking: Promise<VerifiedToken | "busy">, token: string): Promise<Verdict> {
    try {
      const verified = await looking;
      if (verified !== "busy") return judge(verified, token);
      return refuse(503, undefined, "Too many tokens are being checked; try again later");
    } catch (error) {
      return failed(error);
    }
  }

  return {
    admit(authorization, address) {
      const bearer = readBearer(authorization, address);
      if ("token" in bearer) {
        const looked = tokens.look(bearer.token);
        return looked instanceof Promise ? later(looked, bearer.token) : judge(looked, bearer.token);
      }
      if ("malformed" in bearer) return refuse(400, "invalid_request", bearer.malformed);
      return refuse(401, undefined, "A bearer token is needed");
    },
    watch({ token, expiresAt, caller }, ended) {
      let over = false;
      let timer: NodeJS.Timeout | undefined;
      const stop = (): void => {
        over = true;
        clearTimeout(timer);
      };
      const end = (): void => {
        if (over) return;
        stop();
        ended();
      };
      /** Looks again when what is known of the token gets old, at the latest when it expires. */
      const lookIn = (ms: number): void => {
        if (over) return;
        timer = setTimeout(() => void look(), Math.max(1, Math.min(ms, expiresAt - Date.now(), LONGEST_TIMER_MS)));
        timer.unref();
      };
      const look = async (): Promise<void> => {
        if (expiresAt <= Date.now()) return end();
        try {
          const verified = await tokens.look(token);
          // what the stream tells was looked at with these scopes
          if (verified !== "busy" && !caller.scopes.every((scope) => hasScope(verified.caller, scope))) return end();
          // a verifier that keeps nothing must not be asked without end
          lookIn(verified === "busy" ? LOOK_AGAIN_MS : Math.max(verified.freshUntil - Date.now(), LOOK_AGAIN_MS));
        } catch (error) {
          if (error instanceof AuthError && error.code === "invalid_token") return end();
          lookIn(LOOK_AGAIN_MS); // not known now: until it expires, a stream that was opened rightly goes on
        }
      };
      void look();
      return stop;
    },
  };
}
