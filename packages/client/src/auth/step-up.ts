import { computeScopeUnion, isStrictScopeSuperset } from "@modelcontextprotocol/client";
import type { AuthError } from "@tenon/core";
import { authError, insufficientScope } from "./errors.ts";
import type { TokenSet } from "./store.ts";

/** How often one request may be sent again with more scopes. */
export const MAX_STEP_UPS = 2;
const MAX_NOTED = 100;
/**
 * How often one server may have a person asked, or a program's token widened, in so many milliseconds: it may want another scope
 * with each request.
 */
const MAX_ASKED = 10;
const ASKED_MS = 10 * 60_000;
/** Scopes one token may come to have because its server wanted more: nobody has so many rights at one server. */
const MAX_SCOPES = 64;
const NOT_GIVEN = "wants them, and the authorization server did not give them";

/** What one server may have asked for beyond what its token has: it names scopes as it likes, and a person bears only so much. */
export class StepUps {
  readonly #server: string;
  /** Whether a person takes part. */
  readonly #interactive: boolean;
  /** Scopes that a step-up did not bring, and for whom. */
  readonly #notGiven = new Map<string, string>();
  /** When a person was asked lately, or more scopes. */
  #asked: readonly number[] = [];

  constructor(server: string, interactive: boolean) {
    this.#server = server;
    this.#interactive = interactive;
  }

  /** Counts that somebody is asked now. @throws AuthError `auth_required` or `insufficient_scope` when the server has somebody asked again and again */
  count(wanted: string | undefined): void {
    const now = Date.now();
    this.#asked = this.#asked.filter((time) => now - time < ASKED_MS);
    if (this.#asked.length >= MAX_ASKED) {
      const often = `has wanted more ${MAX_ASKED} times within ${ASKED_MS / 60_000} minutes, so no more are asked for now`;
      if (!this.#interactive) throw this.#lacking(wanted, often);
      throw authError(
        this.#server,
        "auth_required",
        `it has wanted a sign-in ${MAX_ASKED} times within ${ASKED_MS / 60_000} minutes, so nobody is asked any more for now; ` +
          "ask who runs it what it needs, and name that in `scopes`",
      );
    }
    this.#asked = [...this.#asked, now];
  }

  /** Asking for more scopes must have a chance, or a person would be asked again and again. @throws AuthError `insufficient_scope` */
  check(wanted: string | undefined, known: TokenSet | undefined, times: number): void {
    if (wanted === undefined) throw this.#lacking(wanted, "does not say which");
    if (known && this.#notGiven.get(wanted) === known.principal) throw this.#lacking(wanted, NOT_GIVEN);
    const all = computeScopeUnion(known?.scope, wanted)?.split(" ").length ?? 0;
    if (all > MAX_SCOPES) throw this.#lacking(wanted, `wants more than ${MAX_SCOPES} scopes of one token`);
    const more = !known || isStrictScopeSuperset(wanted, known.scope);
    if (!more || times > MAX_STEP_UPS) throw this.#lacking(wanted, "still refuses, although they were given");
  }

  /** A new token with no more scopes than the old one would only be refused again. @throws AuthError `insufficient_scope` */
  checkGranted(wanted: string | undefined, { scope, principal }: TokenSet): void {
    if (wanted === undefined || !isStrictScopeSuperset(wanted, scope)) return;
    if (this.#notGiven.size >= MAX_NOTED) this.#notGiven.clear();
    this.#notGiven.set(wanted, principal);
    throw this.#lacking(wanted, NOT_GIVEN);
  }

  #lacking(wanted: string | undefined, why: string): AuthError {
    const todo = "Ask who runs it to give this account or client those rights";
    return insufficientScope(
      this.#server,
      wanted,
      (scopes) => `the request needs scopes${scopes}; the server ${why}. ${todo}`,
    );
  }
}
