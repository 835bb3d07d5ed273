import { isAbsolute, resolve } from "node:path";
import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions, shownValue, visibleText } from "@tenon/core/internal";
import { expectText } from "../expect.ts";
import type { StdioServerConfig } from "../types/servers.ts";

/** A directory of this machine that a container sees. */
export interface Mount {
  /** Path on this machine; a relative one is taken from `cwd`. */
  readonly source: string;
  /** Absolute path inside the container. */
  readonly target: string;
  /** Default false: the container may only read it. */
  readonly writable?: boolean;
}

/** With how little power a child process runs: as another user, or in a container. */
export interface Sandbox {
  /** Name or number; without a container the process is started through `sudo -n`. */
  readonly user?: string;
  /** Starts it in a container of this program. */
  readonly container?: "docker" | "podman";
  /** The container's image; needed with `container`. */
  readonly image?: string;
  /** Directories the container sees. Default: none. */
  readonly mounts?: readonly Mount[];
  /** The container's network; default `"none"`. */
  readonly network?: string;
}

/** A process to be started: a program and its arguments, never a shell string. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** What the configuration adds to the environment of the started program. */
  readonly env: Readonly<Record<string, string>>;
}

function wrong(message: string): never {
  throw new ConfigError(message, { code: "invalid_option" });
}

const USER = /^(?:[A-Za-z_][A-Za-z0-9_.-]*|\d+)(?::(?:[A-Za-z_][A-Za-z0-9_.-]*|\d+))?$/;
const WORD = /^[A-Za-z0-9][A-Za-z0-9_.:/@-]*$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Refuses what a sandbox would not understand, and what would read as an option of the program that makes it.
 * @throws ConfigError `invalid_option`, `unknown_option`
 */
export function checkSandbox(sandbox: unknown, where: string): void {
  if (sandbox === undefined) return;
  if (!isRecord(sandbox)) wrong(`${where} must be an object with user, or container and image`);
  checkOptions(sandbox, ["user", "container", "image", "mounts", "network"], where);
  const { user, container, image, mounts, network } = sandbox;
  if (user !== undefined && !(typeof user === "string" && USER.test(user))) {
    wrong(`${where}.user must be the name or number of a user, got ${shownValue(user)}`);
  }
  if (container === undefined) {
    const given = ["image", "mounts", "network"].filter((key) => key in sandbox);
    if (given.length > 0) wrong(`${where}.${given[0]} needs ${where}.container: "docker" or "podman"`);
    if (user === undefined) wrong(`${where} must have user, or container and image`);
    if (user.includes(":")) wrong(`${where}.user names a group, which only a container takes`);
    return;
  }
  if (container !== "docker" && container !== "podman") {
    wrong(`${where}.container must be "docker" or "podman", got ${shownValue(container)}`);
  }
  for (const [key, value] of Object.entries({ image, network: network ?? "none" })) {
    if (typeof value === "string" && WORD.test(value)) continue;
    wrong(
      `${where}.${key} must be a name such as ${key === "image" ? '"node:22"' : '"none"'}, got ${shownValue(value)}`,
    );
  }
  if (mounts !== undefined && !Array.isArray(mounts)) wrong(`${where}.mounts must be a list of { source, target }`);
  for (const mount of Array.isArray(mounts) ? mounts : []) {
    if (!isRecord(mount)) wrong(`${where}.mounts must be a list of { source, target }, got ${shownValue(mount)}`);
    checkOptions(mount, ["source", "target", "writable"], `${where}.mounts`);
    const { source, target } = mount;
    for (const path of [source, target]) {
      // the launcher separates the parts of a mount by commas
      if (typeof path === "string" && path !== "" && !/[,"\n\r]/.test(path)) continue;
      wrong(`${where}.mounts needs source and target as paths without commas and quotes, got ${shownValue(path)}`);
    }
    if (!String(target).startsWith("/")) wrong(`${where}.mounts: target must be absolute, got ${shownValue(target)}`);
  }
}

function inContainer(config: StdioServerConfig, sandbox: Sandbox, image: string): Launch {
  const { user, container = "docker", mounts = [], network = "none" } = sandbox;
  const env = config.env ?? {};
  const base = config.cwd ?? process.cwd();
  const args = ["run", "--rm", "--interactive", "--init", "--network", network];
  args.push("--cap-drop", "ALL", "--security-opt", "no-new-privileges");
  if (user !== undefined) args.push("--user", user);
  for (const { source, target, writable } of mounts) {
    const path = isAbsolute(source) ? source : resolve(base, source);
    args.push("--mount", `type=bind,source=${path},target=${target}${writable === true ? "" : ",readonly"}`);
  }
  // names only: the values go through the launcher's environment, where no process list shows them
  for (const name of Object.keys(env)) args.push("--env", name);
  args.push(image, config.command, ...(config.args ?? []));
  return { command: container, args, env, ...(config.cwd !== undefined && { cwd: config.cwd }) };
}

function asUser(config: StdioServerConfig, user: string): Launch {
  const env = config.env ?? {};
  const names = Object.keys(env).filter((name) => VARIABLE.test(name));
  const keep = names.length > 0 ? [`--preserve-env=${names.join(",")}`] : [];
  const who = /^\d+$/.test(user) ? `#${user}` : user;
  const args = ["-n", "-u", who, ...keep, "--", config.command, ...(config.args ?? [])];
  return { command: "sudo", args, env, ...(config.cwd !== undefined && { cwd: config.cwd }) };
}

/** How the process of a configured server is started, its sandbox included. */
export function launchOf(config: StdioServerConfig): Launch {
  const { command, args = [], env = {}, cwd, sandbox } = config;
  if (sandbox?.container && sandbox.image !== undefined) return inContainer(config, sandbox, sandbox.image);
  if (sandbox?.user !== undefined && !sandbox.container) return asUser(config, sandbox.user);
  return { command, args, env, ...(cwd !== undefined && { cwd }) };
}

/** A word as a person would type it in a shell; only for showing. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${visibleText(word).replaceAll("'", "'\\''")}'`;
}

/**
 * The exact command that starts a configured server, its sandbox included, as one line for a person: arguments quoted, hidden
 * characters written out, variables by name only. Nothing ever runs this line: programs get the arguments one by one.
 *
 * @example commandLineOf({ command: "node", args: ["a b.js"], env: { TOKEN: "…" } }) // "TOKEN=… node 'a b.js'"
 */
export function commandLineOf(config: StdioServerConfig): string {
  const given: unknown = config; // programs without types give it any server
  expectText(isRecord(given) ? given.command : undefined, "commandLineOf(config): command");
  const { command, args, env, cwd } = launchOf(config);
  const variables = Object.keys(env)
    .sort()
    .map((name) => `${visibleText(name)}=…`);
  const words = [...variables, quoted(command), ...args.map(quoted)].join(" ");
  return cwd === undefined ? words : `${words} (in ${quoted(cwd)})`;
}
