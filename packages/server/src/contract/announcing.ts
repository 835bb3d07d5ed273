import { type Implementation, Server, type ServerOptions } from "@modelcontextprotocol/server";
import { type Era, isRecord } from "@tenon/core";
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
      const version = contract.version(ctx.mcpReq._meta);
      const result = await inner(request, ctx);
      const capabilities = inside(result.capabilities);
      const place = era === "modern" ? "extensions" : "experimental";
      const announced = { ...inside(capabilities[place]), [EXTENSION]: contract.declaration(version) };
      const said = { ...result, capabilities: { ...capabilities, [place]: announced } };
      const lasts = contract.lasts();
      // kept longer than its signature, it would be refused
      return method === "initialize" || lasts === undefined
        ? said
        : { ...said, ttlMs: Math.min(discover.ttlMs, lasts) };
    };
  }
}
