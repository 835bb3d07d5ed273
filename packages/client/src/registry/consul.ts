import { isLoopback, isRecord } from "@tenon/core";
import {
  checkOptions,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  parseUrl,
  refuseOption,
  text,
  urlHost,
} from "@tenon/core/internal";
import { shownAddress } from "../connection/place.ts";
import { checkAuthorities, checkUrl } from "../options.ts";
import type { ReplicaConfig } from "../types/routing.ts";
import { replicasOf, wordsOf } from "./entries.ts";
import { badRegistry, expectGood, openLine } from "./request.ts";
import type { Registry } from "./types.ts";
import { watching } from "./watching.ts";

/** Milliseconds that Consul holds a question until something changes. */
const WAIT_MS = 60_000;
/** What an answer may take beyond that: Consul adds up to a sixteenth by itself. */
const SPARE_MS = 5_000;

/** Options of `consulRegistry`. */
export interface ConsulRegistryOptions {
  /** Address of an agent or server, for example `http://127.0.0.1:8500`. */
  url: string;
  /** Its ACL token; sent to this address only, over https or to this machine. */
  token?: string;
  /** Only instances with this tag. Default: all. */
  tag?: string;
  /** The datacenter. Default: the agent's own. */
  dc?: string;
  /** Milliseconds that one question waits for a change, at most 600,000. Default 60,000. */
  waitMs?: number;
  /** Certificates as PEM text trusted instead of the system's. */
  ca?: string | string[];
}

/** The longest that Consul takes. */
const MAX_WAIT_MS = 600_000;

const waitMs: OptionCheck = (value, where) => {
  milliseconds(value, where);
  if (Number(value) > MAX_WAIT_MS) refuseOption(`${where} must be at most ${MAX_WAIT_MS} milliseconds, got ${value}`);
};

const OPTIONS: OptionChecks<ConsulRegistryOptions> = {
  url: checkUrl,
  token: text,
  tag: text,
  dc: text,
  waitMs,
  ca: checkAuthorities,
};

/** Where an instance is: the address it registered for MCP, or its host and port with the usual path. */
function instanceOf(entry: unknown): ReplicaConfig | undefined {
  if (!isRecord(entry) || !isRecord(entry.Service)) return undefined;
  const { ID, Address, Port, Meta } = entry.Service;
  const meta = isRecord(Meta) ? Meta : {};
  const node = isRecord(entry.Node) ? entry.Node.Address : undefined;
  const host = typeof Address === "string" && Address !== "" ? Address : node;
  const named = typeof meta.mcp_url === "string" ? parseUrl(meta.mcp_url)?.href : undefined;
  const around = typeof host === "string" && typeof Port === "number" && Port > 0;
  const url = named ?? (around ? `http://${urlHost(host)}:${Port}/mcp` : undefined);
  if (url === undefined) return undefined;
  const capabilities = wordsOf(meta.mcp_capabilities);
  return { url, ...(typeof ID === "string" && { id: ID }), ...(capabilities && { capabilities }) };
}

/**
 * The index for the next question: one that went backwards, or is none, begins anew (Consul, blocking queries).
 */
function nextIndex(header: string | string[] | undefined, before: string | undefined): string | undefined {
  const index = Number(Array.isArray(header) ? header[0] : header);
  if (!Number.isSafeInteger(index) || index <= 0) return undefined;
  return before !== undefined && index < Number(before) ? undefined : String(index);
}

/**
 * Services of a Consul catalogue, as far as their health checks pass. One question waits at Consul until something changes. An instance
 * is reached at `mcp_url` of its meta data, else at its address and port with the path `/mcp`; `mcp_capabilities` says what it can do,
 * in words with commas. Servers register both with `consul` of `@tenon/server/register`.
 * @throws ConfigError `invalid_option`
 * @example consulRegistry({ url: "http://127.0.0.1:8500" })
 */
export function consulRegistry(options: ConsulRegistryOptions): Registry {
  checkOptions(options, OPTIONS, "consulRegistry(options)");
  checkUrl(options.url, "consulRegistry(options).url");
  const base = new URL(options.url);
  const { token, tag, dc, waitMs: wait = WAIT_MS, ca } = options;
  if (token !== undefined && base.protocol === "http:" && !isLoopback(base.hostname)) {
    refuseOption(
      `consulRegistry(options).token would be sent unencrypted to ${base.hostname}; use https, or an agent on this machine`,
    );
  }
  const line = openLine(base, ca);
  const place = shownAddress(base);
  return watching({
    look: async (service, { mark, signal, quiet }) => {
      const url = new URL(`v1/health/service/${encodeURIComponent(service)}`, base.href.replace(/\/*$/, "/"));
      url.searchParams.set("passing", "true");
      if (tag !== undefined) url.searchParams.set("tag", tag);
      if (dc !== undefined) url.searchParams.set("dc", dc);
      if (mark !== undefined) {
        url.searchParams.set("index", mark);
        url.searchParams.set("wait", `${wait}ms`);
      }
      const answer = await line.ask({
        url,
        headers: token === undefined ? {} : { "x-consul-token": token },
        timeoutMs: (mark === undefined ? 0 : wait * (1 + 1 / 16)) + SPARE_MS,
        signal,
        quiet,
      });
      expectGood(place, answer);
      if (!Array.isArray(answer.body)) throw badRegistry(place, "an answer that is no list of instances");
      const instances = answer.body.map(instanceOf).filter((instance) => instance !== undefined);
      const replicas = replicasOf(instances).sort((a, b) => ((a.id ?? a.url) < (b.id ?? b.url) ? -1 : 1));
      const next = nextIndex(answer.headers["x-consul-index"], mark);
      // without an index nothing would be waited for
      return { replicas, mark: next, pauseMs: next === undefined ? 1_000 : 0 };
    },
    close: () => line.close(),
  });
}
