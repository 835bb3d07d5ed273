import type { SigningKey } from "@tenon/server/development";
import type { ClientMetadata } from "oidc-provider";

/** What an authorization server for development is made of. */
export interface AuthServerSettings {
  /** Origin that the metadata documents name, and that clients compare. */
  readonly issuer: string;
  readonly key: SigningKey;
  /** Servers that tokens may be for (RFC 8707), as absolute addresses. */
  readonly resources: readonly string[];
  /** What may be asked for. */
  readonly scopes: readonly string[];
  /** Who can sign in; empty: any name. */
  readonly users: readonly string[];
  readonly clients: readonly ClientMetadata[];
  /** Whether clients may register themselves (RFC 7591). */
  readonly registration: boolean;
  /** Lifetime of access tokens in seconds. */
  readonly tokenSeconds: number;
  /** Whether metadata documents may lie on this computer, over http. */
  readonly loopbackDocuments: boolean;
  /** A user who is signed in, and for whom everything is approved, without asking. */
  readonly autoApprove?: string;
  /** Takes one line for whoever watches the server. */
  readonly log: (line: string) => void;
}

/** Scopes that are not a resource's: identity, and staying signed in. */
export const STANDARD_SCOPES = ["openid", "offline_access"];

/** The configured resource that an address means; addresses that differ only in spelling are one. */
export function resourceOf(asked: string, resources: readonly string[]): string | undefined {
  const href = (text: string): string | undefined => (URL.canParse(text) ? new URL(text).href : undefined);
  const wanted = href(asked);
  return wanted === undefined ? undefined : resources.find((one) => href(one) === wanted);
}
