import { createHash } from "node:crypto";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { authError, insufficientScope, reasonOf, saidOf } from "./errors.ts";
import { presenter } from "./present.ts";
import type { Auth, AuthSession, AuthTarget, RefusedRequest } from "./types.ts";

/** Options of `bearer`. */
export interface BearerOptions {
  /**
   * Names who the token belongs to, asked after each token. Left out: issuer and subject of a JWT, the token itself otherwise,
   * so that another opaque token counts as another person.
   */
  principal?: () => string;
}

const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/; // RFC 6750 section 2.1

/** Who a token belongs to, as far as it says so itself. Only tells callers apart: the server checks it. */
function subjectOf(token: string): string {
  const [, payload] = token.split(".");
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload ?? "", "base64url").toString("utf8"));
    if (isRecord(claims) && typeof claims.sub === "string") return JSON.stringify([claims.iss ?? null, claims.sub]);
  } catch {
    // an opaque one
  }
  return createHash("sha256").update(token).digest("base64url");
}

class BearerSession implements AuthSession {
  readonly #get: () => string | Promise<string>;
  readonly #fixed: boolean;
  readonly #principal: (() => string) | undefined;
  readonly #server: string;

  constructor(token: string | (() => string | Promise<string>), { principal }: BearerOptions, { server }: AuthTarget) {
    this.#fixed = typeof token === "string";
    this.#get = typeof token === "string" ? () => token : token;
    this.#principal = principal;
    this.#server = server;
  }

  async credential() {
    let token: unknown;
    try {
      token = await this.#get();
    } catch (error) {
      throw authError(this.#server, "token_unavailable", `the function given to bearer() failed: ${reasonOf(error)}`, {
        cause: error,
      });
    }
    if (typeof token !== "string" || !TOKEN.test(token)) {
      const got =
        typeof token === "string" ? (token === "" ? "an empty one" : "one with other characters") : typeof token;
      throw authError(
        this.#server,
        "token_unavailable",
        `bearer() needs a token of letters, digits and -._~+/ (RFC 6750), got ${got}`,
      );
    }
    return presenter(this.#principal?.() ?? subjectOf(token), token);
  }

  async refused(request: RefusedRequest, times: number): Promise<void> {
    const { status, challenge, token } = request;
    if (status === 403) {
      throw insufficientScope(
        this.#server,
        challenge.scope,
        (scopes) => `the token lacks scopes${scopes} that the request needs${saidOf(request)}; use one that has them`,
      );
    }
    // asked once more: whoever gave it may have a newer one
    const { token: now } = await this.credential();
    if (!this.#fixed && times === 1 && now !== token) return;
    const todo = this.#fixed ? "configure a valid one" : "the function given to bearer() must return a valid one";
    throw authError(this.#server, "invalid_token", `it refuses the token (HTTP 401)${saidOf(request)}; ${todo}`, {
      data: { status },
    });
  }
}

/**
 * Sends a token that somebody else takes care of.
 * @param token the token, or a function that is asked for it before every request. After a 401 it is asked once more; the
 *   request is sent again if it then gives another token
 * @throws ConfigError `invalid_option`
 * @example auth: bearer(() => session.accessToken)
 */
export function bearer(token: string | (() => string | Promise<string>), options: BearerOptions = {}): Auth {
  checkOptions(options, ["principal"], "bearer(token, options)");
  const usable = typeof token === "function" || (typeof token === "string" && TOKEN.test(token));
  if (!usable) {
    throw new ConfigError("bearer(token) needs a token of letters, digits and -._~+/ (RFC 6750), or a function", {
      code: "invalid_option",
    });
  }
  if (options.principal !== undefined && typeof options.principal !== "function") {
    throw new ConfigError("bearer(token, options).principal must be a function", { code: "invalid_option" });
  }
  return Object.freeze({ kind: "bearer", open: (target: AuthTarget) => new BearerSession(token, options, target) });
}
