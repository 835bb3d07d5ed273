import type { ToolAnnotations } from "@modelcontextprotocol/client";

/** What a tool says of itself, in words of one kind. */
export interface Hints {
  readonly readOnly: boolean;
  /** A read-only tool is never destructive. */
  readonly destructive: boolean;
  readonly idempotent: boolean;
  readonly openWorld: boolean;
}

/** The hints there are. */
export const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"] as const satisfies ReadonlyArray<
  keyof Hints
>;

/**
 * A tool's annotations with the protocol's defaults, the worst case, for what it does not say (revision 2026-07-28,
 * ToolAnnotations). They are its server's word.
 */
export function hintsOf(annotations: ToolAnnotations): Hints {
  const readOnly = annotations.readOnlyHint === true;
  return {
    readOnly,
    destructive: !readOnly && annotations.destructiveHint !== false,
    idempotent: annotations.idempotentHint === true,
    openWorld: annotations.openWorldHint !== false,
  };
}

/** Whether a second run does no harm, as far as a tool says. One that nobody knows has not said so. */
export function isRepeatable(tool: { readonly annotations: ToolAnnotations } | undefined): boolean {
  if (!tool) return false;
  const { readOnly, idempotent } = hintsOf(tool.annotations);
  return readOnly || idempotent;
}
