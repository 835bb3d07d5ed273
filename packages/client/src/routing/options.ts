import { isLoopback, isRecord } from "@tenon/core";
import {
  callable,
  checkOptions,
  flag,
  kindOf,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  positive,
  text,
  refuseOption as wrong,
  zeroOrMore,
} from "@tenon/core/internal";
import type { BreakerOptions, BreakerRate, ReplicaConfig, RoutingOptions } from "../types/routing.ts";
import type { HttpServerConfig, ReplicasServerConfig, ServiceServerConfig } from "../types/servers.ts";
import { idOf } from "./members.ts";
import { parseOrigin } from "./origins.ts";

const share: OptionCheck = (value, where) => {
  if (typeof value === "number" && value > 0 && value < 1) return;
  wrong(`${where} must be a share between 0 and 1, got ${typeof value === "number" ? value : kindOf(value)}`);
};

const RATE_OPTIONS: OptionChecks<BreakerRate> = { threshold: share, minimumCalls: positive("calls") };

/** More failures than anybody wants to wait for. */
const MAX_FAILURES = 100_000;

const BREAKER_OPTIONS: OptionChecks<BreakerOptions> = {
  failures: (value, where) => {
    zeroOrMore("failures")(value, where);
    if (!Number.isInteger(value) || Number(value) > MAX_FAILURES)
      wrong(`${where} must be a whole number up to ${MAX_FAILURES}`);
  },
  windowMs: milliseconds,
  openMs: milliseconds,
  rate: (value, where) => {
    if (!isRecord(value)) wrong(`${where} must be an object such as { threshold: 0.5 }, got ${kindOf(value)}`);
    checkOptions(value, RATE_OPTIONS, where);
    if (value.threshold === undefined) wrong(`${where}.threshold must be a share between 0 and 1, got nothing`);
  },
};

/** Refuses what is no breaker. */
export const checkBreaker: OptionCheck = (value, where) => {
  if (value === false) return;
  if (!isRecord(value)) wrong(`${where} must be false or an object such as { failures: 50 }, got ${kindOf(value)}`);
  checkOptions(value, BREAKER_OPTIONS, where);
};

const ROUTING_OPTIONS: OptionChecks<RoutingOptions> = { breaker: checkBreaker, prewarm: flag, key: callable };

/** Refuses what says nothing about routing. */
export const checkRouting: OptionCheck = (value, where) => {
  if (!isRecord(value)) wrong(`${where} must be an object such as { prewarm: true }, got ${kindOf(value)}`);
  checkOptions(value, ROUTING_OPTIONS, where);
};

/** Refuses what is no registry. */
export const checkRegistry: OptionCheck = (value, where) => {
  const whole = isRecord(value) && ["replicas", "watch", "close"].every((name) => typeof value[name] === "function");
  if (!whole) wrong(`${where} must be made by a function of @tenon/client/registry, such as staticRegistry({ … })`);
};

const words: OptionCheck = (value, where) => {
  if (!Array.isArray(value) || !value.every((word) => typeof word === "string"))
    wrong(`${where} must be a list of texts`);
};

const name: OptionCheck = (value, where) => {
  text(value, where);
  if (value === "") wrong(`${where} must not be empty`);
};

/** What replicas of a list may be. */
export function replicaChecks(url: OptionCheck): OptionChecks<ReplicaConfig> {
  return { url, id: name, capabilities: words };
}

/** Refuses what is no list of replicas. @param url refuses what is no address */
export function checkReplicas(url: OptionCheck): OptionCheck {
  const checks = replicaChecks(url);
  return (value, where) => {
    if (!Array.isArray(value) || value.length === 0) {
      wrong(
        `${where} must be a list of at least one address or { url, id, capabilities }, got ${Array.isArray(value) ? "an empty list" : kindOf(value)}`,
      );
    }
    const ids = new Set<string>();
    for (const [index, given] of value.entries()) {
      const at = `${where}[${index}]`;
      if (typeof given === "string") url(given, at);
      else {
        if (!isRecord(given)) wrong(`${at} must be an address or { url, id, capabilities }, got ${kindOf(given)}`);
        checkOptions(given, checks, at);
        url(given.url, `${at}.url`);
      }
      const id = idOf(typeof given === "string" ? { url: given } : (given as unknown as ReplicaConfig)); // it was checked
      if (ids.has(id))
        wrong(`${at} is ${JSON.stringify(id)} a second time; give the replicas of one address an id each`);
      ids.add(id);
    }
  };
}

/** Refuses what is no list of origins. */
export const checkOrigins: OptionCheck = (value, where) => {
  words(value, where);
  const wrongOne = (value as string[]).find((origin) => parseOrigin(origin) === undefined); // a list of texts
  if (wrongOne === undefined) return;
  wrong(
    `${where} has ${JSON.stringify(wrongOne.slice(0, 200))}, which is no origin: scheme and host such as "https://kb.example", "https://*.kb.example" ` +
      'for every host below, "http://10.0.0.7:*" for every port',
  );
};

export const checkService = name;

/** Whether a token would be sent to an address unencrypted. */
function unencrypted(url: string): string | undefined {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname) ? hostname : undefined;
}

/**
 * Refuses credentials that would go where nobody said they may: to replicas without https, or to wherever a registry points.
 * @throws ConfigError `invalid_option`
 */
export function checkCredentials(
  config: HttpServerConfig | ReplicasServerConfig | ServiceServerConfig,
  where: string,
): void {
  if ("replicas" in config && config.auth !== undefined) {
    for (const given of config.replicas) {
      const host = unencrypted(typeof given === "string" ? given : given.url);
      if (host !== undefined)
        wrong(`${where}.auth would send a token unencrypted to ${host}; use https, or a tunnel to this machine`);
    }
  }
  if (!("service" in config)) return;
  const { auth, headers, origins, resource } = config;
  const secret = auth !== undefined ? "auth" : Object.keys(headers ?? {}).length > 0 ? "headers" : undefined;
  if (secret !== undefined && origins === undefined) {
    wrong(
      `${where} has ${secret}, which would be sent to whatever address the registry names. Give it origins, such as ["https://*.kb.example"]`,
    );
  }
  if (auth !== undefined && auth.kind !== "bearer" && resource === undefined) {
    wrong(`${where}.auth is ${auth.kind}, which asks for tokens for one address; give it as resource`);
  }
}
