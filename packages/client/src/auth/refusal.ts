import { AuthError, ConnectionError } from "@tenon/core";
import { readChallenge } from "./challenge.ts";
import type { RefusedRequest } from "./types.ts";

/** A server refused a request that its `auth` had authorised, or could: whoever sent it asks the session what to do. */
export class Refusal extends AuthError {
  readonly refused: RefusedRequest;

  constructor(server: string, refused: RefusedRequest) {
    super(`server "${server}" refused a request with HTTP ${refused.status}`, {
      code: refused.status === 401 ? "unauthorized" : "forbidden",
      server,
      maybeExecuted: false,
      data: { status: refused.status },
    });
    this.refused = refused;
  }
}

/** Requests began to be somebody else's while this one was on its way; it was not sent. */
export class IdentityChanged extends ConnectionError {
  constructor(server: string) {
    super(
      `the credential for server "${server}" belongs to somebody else now; the request was not sent. Repeat it, or use ` +
        "one client per person",
      { code: "identity_changed", server, retryable: true, maybeExecuted: false },
    );
  }
}

/** The refusal in an answer, where the server says that a better credential would help. */
export function refusalOf(server: string, answer: Response, token: string | undefined): Refusal | undefined {
  const { status } = answer;
  if (status !== 401 && status !== 403) return undefined;
  const challenge = readChallenge(answer.headers.get("www-authenticate"));
  if (status === 403 && challenge.error !== "insufficient_scope") return undefined;
  return new Refusal(server, { status, challenge, token });
}
