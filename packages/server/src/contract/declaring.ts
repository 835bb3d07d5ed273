import type { JsonObject } from "@tenon/core";
import { CONTRACT_VERSIONS, type ContractDeclaration, type ContractVersion, type KeyRing } from "@tenon/core/contract";

/** What a declaration says besides its version and who vouches for it. */
export interface Said {
  readonly server_id: string;
  readonly context_schema: JsonObject;
  readonly authentication: JsonObject | undefined;
  capabilities(): readonly string[];
}

/** Says the declaration, signed by the key that is in use when it is asked for. */
export interface Declaring {
  of(version: ContractVersion, now?: number): ContractDeclaration;
  /** Milliseconds from `now` until another key signs; undefined without keys. */
  lasts(now?: number): number | undefined;
}

interface Kept {
  readonly declaration: ContractDeclaration;
  /** Milliseconds since 1970. */
  readonly until: number;
  readonly capabilities: string;
}

/** Signing costs more than a call, so a declaration is kept until its key rotates or the server offers something else. */
export function createDeclaring(said: Said, ring: KeyRing | undefined): Declaring {
  const kept = new Map<ContractVersion, Kept>();
  return {
    of(version, now = Date.now()) {
      const capabilities = said.capabilities();
      const names = capabilities.join(" ");
      const before = kept.get(version);
      if (before && before.until > now && before.capabilities === names) return before.declaration;
      const { server_id, context_schema, authentication } = said;
      const plain: ContractDeclaration = {
        version,
        server_id,
        capabilities,
        context_schema,
        ...(authentication && { authentication }),
      };
      const declaration = ring ? ring.sign(plain, now) : plain;
      const until = ring ? ring.nextRotation(now) : Number.POSITIVE_INFINITY;
      kept.set(version, { declaration, until, capabilities: names });
      return declaration;
    },
    lasts: (now = Date.now()) => ring && Math.max(0, ring.nextRotation(now) - now),
  };
}

/** The version that was asked for; undefined when this server does not have it. Not asked at all means the newest. */
export function versionAsked(asked: unknown): ContractVersion | undefined {
  return asked === undefined ? CONTRACT_VERSIONS[0] : CONTRACT_VERSIONS.find((version) => version === asked);
}
