import { ToolError } from "../errors.ts";
import type { Middleware } from "./onion.ts";
import type { ServerRequest } from "./request.ts";

/** What a rule says: yes, no, or no with a reason the caller reads. */
export type Verdict = boolean | string;

/** The caller may not do this. `data.code` is `"forbidden"`. */
export class ForbiddenError extends ToolError {
  constructor(reason: string) {
    super(reason, { code: "forbidden", data: { code: "forbidden" } });
  }
}

/**
 * Lets a request through only when the rule says so; tool calls are refused with an error the model reads, other methods
 * with a JSON-RPC error. Lists pass the rule too: use `visible` or `scopes` to leave single definitions out.
 *
 * @param rule `true` allows, `false` refuses, a string refuses with that reason
 * @throws ForbiddenError when the rule refuses
 * @example server.use(authorize(({ name, caller }) => name !== "refund" || caller?.scopes.includes("refunds") === true))
 */
export function authorize(rule: (request: ServerRequest) => Verdict | Promise<Verdict>): Middleware {
  return async (request, next) => {
    const verdict = await rule(request);
    if (verdict === true) return next();
    const what = request.name === undefined ? request.method : `${request.method} of ${request.name}`;
    throw new ForbiddenError(typeof verdict === "string" ? verdict : `Not allowed: ${what}`);
  };
}
