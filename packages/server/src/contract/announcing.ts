import { type Implementation, Server, type ServerOptions } from "@modelcontextprotocol/server";
import { type Era, isRecord, META } from "@tenon/core";
import type { ContractVersion } from "@tenon/core/contract";
import { countNegotiation } from "@tenon/core/internal";
import type { Contract } from "./contract.ts";

/** The extension's id; the contract's own module has it too, and pulls in a compiler that this file must not. */
const EXTENSION = "dev.tenon/context";

/** What announces a contract. */
interface Announcing {
  readonly contract: Contract;
  readonly era: Era;
  /** The hint that the answer to `server/discover` goes out with. */
  readonly discover: { readonly ttlMs: number; readonly cacheScope: "private" | "public" };
}

type Handler = Parameters<Server["_wrapHandler"]>[1];

const inside = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});

/** The version asked for; a refusal is counted. @throws ProtocolError */
function versionFor(contract: Contract, asked: Readonly<Record<string, unknown>>): ContractVersion {
  try {
    return contract.version(asked);
  } catch (error) {
    countNegotiation("server", "refused");
    throw error;
  }
}

/** How a client calls what it asked for, so that both sides count the same. */
function wayOf(version: ContractVersion, asked: Readonly<Record<string, unknown>>): string {
  return META.contractWithout in asked && version === "0.4.2" ? `${version} without expires_at` : version;
}

/**
 * A protocol instance that announces a contract: on 2026-07-28 among the extensions of `server/discover`, on 2025-11-25 under
 * `experimental` of `initialize`. It is said anew each time, since its signature ends while the instance lives on.
 */
export class ContractedServer extends Server {
  readonly #announcing: Announcing;

  constructor(identity: Implementation, options: ServerOptions, announcing: Announcing) {
    super(identity, options);
    this.#announcing = announcing;
  }

  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const inner = super._wrapHandler(method, handler);
    if (method !== "server/discover" && method !== "initialize") return inner;
    return async (request, ctx) => {
      const { contract, era, discover } = this.#announcing;
      const asked = inside(ctx.mcpReq._meta);
      const version = versionFor(contract, asked);
      const result = await inner(request, ctx);
      const capabilities = inside(result.capabilities);
      const place = era === "modern" ? "extensions" : "experimental";
      const announced = { ...inside(capabilities[place]), [EXTENSION]: contract.declaration(version) };
      const said = { ...result, capabilities: { ...capabilities, [place]: announced } };
      if (META.contract in asked) countNegotiation("server", wayOf(version, asked));
      const lasts = contract.lasts();
      // kept longer than its signature, it would be refused
      return method === "initialize" || lasts === undefined
        ? said
        : { ...said, ttlMs: Math.min(discover.ttlMs, lasts) };
    };
  }
}
