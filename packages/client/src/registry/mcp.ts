import { isRecord, ProtocolError } from "@tenon/core";
import { checkOptions, milliseconds, type OptionChecks } from "@tenon/core/internal";
import { shownAddress } from "../connection/place.ts";
import { checkAuthorities, checkUrl } from "../options.ts";
import type { ReplicaConfig } from "../types/routing.ts";
import { replicasOf } from "./entries.ts";
import { badRegistry, expectGood, openLine, type Told } from "./request.ts";
import type { Registry } from "./types.ts";
import { watching } from "./watching.ts";

/** Pages of one search; a name that is not found by then is not there. */
const MAX_PAGES = 20;
const TIMEOUT_MS = 10_000;
/** Milliseconds between two looks: entries change by the hour. */
const REFRESH_MS = 300_000;
const OFFICIAL = "io.modelcontextprotocol.registry/official";

/** Options of `mcpRegistry`. */
export interface McpRegistryOptions {
  /** Its address, without the version of its API: `https://registry.modelcontextprotocol.io`, or one of your own. */
  url: string;
  /** Milliseconds between two looks. Default 300,000. */
  refreshMs?: number;
  /** Certificates as PEM text trusted instead of the system's. */
  ca?: string | string[];
}

const OPTIONS: OptionChecks<McpRegistryOptions> = { url: checkUrl, refreshMs: milliseconds, ca: checkAuthorities };

/** One entry of the list, in either of its forms: around the server's document, or the document itself. */
function entryOf(item: unknown): { server: Record<string, unknown>; official: Record<string, unknown> } | undefined {
  if (!isRecord(item)) return undefined;
  const server = isRecord(item.server) ? item.server : item;
  const meta = isRecord(item._meta) ? item._meta : isRecord(server._meta) ? server._meta : {};
  return { server, official: isRecord(meta[OFFICIAL]) ? meta[OFFICIAL] : {} };
}

/** The addresses of a server's document that speak Streamable HTTP and need nothing filled in. */
function remotesOf({ remotes }: Record<string, unknown>): ReplicaConfig[] {
  if (!Array.isArray(remotes)) return [];
  return replicasOf(
    remotes.flatMap((remote) => {
      if (!isRecord(remote) || (remote.type ?? remote.transport_type) !== "streamable-http") return [];
      return typeof remote.url === "string" && !remote.url.includes("{") ? [remote.url] : [];
    }),
  );
}

/**
 * Servers of a registry of the official format (`GET /v0.1/servers`, or `/v0/servers` where that is older), by their name there, such as
 * `io.github.acme/kb`: the addresses of the latest version that speak Streamable HTTP are its replicas.
 * @throws ConfigError `invalid_option`
 * @example mcpRegistry({ url: "https://registry.modelcontextprotocol.io" })
 */
export function mcpRegistry(options: McpRegistryOptions): Registry {
  checkOptions(options, OPTIONS, "mcpRegistry(options)");
  checkUrl(options.url, "mcpRegistry(options).url");
  const base = options.url.replace(/\/*$/, "/");
  const place = shownAddress(base);
  const { refreshMs = REFRESH_MS } = options;
  const line = openLine(new URL(base), options.ca);
  let version: "v0.1" | "v0" = "v0.1";

  return watching({
    look: async (service, { signal, quiet }) => {
      const page = async (cursor: string | undefined): Promise<Told> => {
        const url = new URL(`${version}/servers`, base);
        const query = { search: service, version: "latest", limit: "100", ...(cursor !== undefined && { cursor }) };
        for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
        return line.ask({ url, timeoutMs: TIMEOUT_MS, signal, quiet });
      };
      let found: ReplicaConfig[] = [];
      let cursor: string | undefined;
      const seen = new Set<string>();
      for (let pages = 0; pages < MAX_PAGES; pages++) {
        let answer = await page(cursor);
        if (answer.status === 404 && pages === 0 && version === "v0.1") {
          version = "v0";
          answer = await page(cursor);
        }
        if (answer.status === 404) version = "v0.1"; // it may be upgraded
        expectGood(place, answer);
        const { servers, metadata } = isRecord(answer.body) ? answer.body : {};
        if (!Array.isArray(servers)) throw badRegistry(place, "an answer without a list of servers");
        for (const item of servers) {
          const entry = entryOf(item);
          if (!entry || entry.server.name !== service || entry.official.status === "deleted") continue;
          // a registry that knows no `version=latest` lists all of them
          if (found.length === 0 || entry.official.isLatest === true) found = remotesOf(entry.server);
          if (entry.official.isLatest === true) return { replicas: found, pauseMs: refreshMs };
        }
        const next: unknown = isRecord(metadata) ? (metadata.nextCursor ?? metadata.next_cursor) : undefined;
        if (typeof next !== "string" || next === "") break;
        if (seen.has(next))
          throw new ProtocolError(`the registry at ${place} never ends its list`, { code: "bad_registry" });
        seen.add(next);
        cursor = next;
      }
      return { replicas: found, pauseMs: refreshMs };
    },
    close: () => line.close(),
  });
}
