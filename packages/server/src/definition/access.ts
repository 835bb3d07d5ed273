import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { Caller, Exchange } from "../handler/context.ts";
import { checkScopes, hasScope } from "./scopes.ts";

/** The side of a request that decides what its caller may see. */
export type Viewer = Pick<Exchange, "caller" | "era" | "client" | "headers" | "meta">;

/** What any definition may say about who sees it. */
export interface AccessOptions {
  /** Groups for the server's `visibleTags`: a tagged definition is seen by callers who have one of its tags. Never sent out. */
  tags?: readonly string[];
  /** Whether this caller sees it at all. Hidden means not listed, and answered as if it did not exist. */
  visible?: (caller: Caller | undefined, viewer: Viewer) => boolean;
  /**
   * Scopes a caller's token needs. Without them it is not listed, and using it is an error that names them. On stdio, where
   * the caller is the process that started the server, nothing is asked for.
   */
  scopes?: readonly string[];
}

/** Tags a caller may see; the server's option. */
export type VisibleTags = (caller: Caller | undefined) => readonly string[];

/** Who may see and use one definition. */
export interface Access {
  /** Nobody is kept out, so nothing has to be asked. */
  readonly open: boolean;
  /** All scopes it needs. */
  readonly scopes: readonly string[];
  /** False: for this viewer it does not exist. */
  exists(viewer: Viewer): boolean;
  /** Scopes the viewer lacks; empty when the definition may be used. */
  lacking(viewer: Viewer): readonly string[];
}

/** The server's rule about tags, asked once per request. */
export function oncePerRequest(visibleTags: VisibleTags): (viewer: Viewer) => readonly string[] {
  const known = new WeakMap<Viewer, readonly string[]>();
  return (viewer) => {
    const tags = known.get(viewer) ?? visibleTags(viewer.caller);
    known.set(viewer, tags);
    return tags;
  };
}

/**
 * Compiles the access options of one definition.
 * @param where for messages, such as `"tool refund"`
 * @param tagsOf the server's rule about tags; undefined: tags hide nothing
 * @throws ConfigError `code: "scope"`
 */
export function compileAccess(
  where: string,
  options: AccessOptions,
  tagsOf: ((viewer: Viewer) => readonly string[]) | undefined,
): Access {
  const { tags = [], visible, scopes = [] } = options;
  checkScopes(scopes, `${where}: scopes`);
  const tagged = tagsOf !== undefined && tags.length > 0;
  return {
    open: !tagged && visible === undefined && scopes.length === 0,
    scopes,
    exists: (viewer) =>
      (!tagged || tagsOf(viewer).some((tag) => tags.includes(tag))) &&
      (visible === undefined || visible(viewer.caller, viewer)),
    lacking(viewer) {
      // without a caller and without HTTP headers it is stdio: the parent process is trusted as the user is
      if (scopes.length === 0 || (viewer.caller === undefined && viewer.headers === undefined)) return [];
      return scopes.filter((scope) => !hasScope(viewer.caller, scope));
    },
  };
}

/** Whether the definition appears in this viewer's lists. */
export function isListed(access: Access, viewer: Viewer): boolean {
  return access.open || (access.exists(viewer) && access.lacking(viewer).length === 0);
}

/** Names this caller could have meant: a suggestion must not tell what is hidden. */
export function* listedNames(known: ReadonlyMap<string, { access: Access }>, viewer: Viewer): Iterable<string> {
  for (const [name, { access }] of known) if (isListed(access, viewer)) yield name;
}

/** How a caller is told that it lacks scopes. */
export function scopeError(what: string, lacking: readonly string[]): ProtocolError {
  const message = `${what} needs the scope ${lacking.join(" ")}, which the caller does not have`;
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, { reason: "insufficient_scope", scopes: lacking });
}

/** @throws ProtocolError naming the scopes the caller lacks; over HTTP they were looked at before, for the status 403 */
export function demandScopes(what: string, access: Access, viewer: Viewer): void {
  const lacking = access.open ? [] : access.lacking(viewer);
  if (lacking.length > 0) throw scopeError(what, lacking);
}
