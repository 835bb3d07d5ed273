import { ConfigError, messageOf, TenonError, TrustError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import { withSignal } from "../connection/deadline.ts";
import { commandLineOf } from "../connection/launch.ts";
import type { EndpointConfig, ServerConfig, ServerInfo } from "../types/servers.ts";
import { definitionOf, diffTool, fingerprint, formatChanges, type ToolChange, type TrustedTool } from "./definition.ts";
import { effectRefusal, notGranted, toolRefusal } from "./grants.ts";
import { acceptStart, type Lock, pinnedTool, readLock, updateLock, withTools } from "./lock.ts";
import { reviewTools, type ToolFinding } from "./review.ts";

/** What is asked when tools of a server are seen for the first time. */
export interface FirstUse {
  readonly server: string;
  readonly tools: readonly TrustedTool[];
  /** What a person should read first. */
  readonly findings: readonly ToolFinding[];
  /** True when other tools of this server were accepted before. */
  readonly known: boolean;
}

/** Where accepted tools are recorded, and what happens to those that are not. */
export interface PinOptions {
  /** The lock file, for example `"tenon.lock"`; made when the first tool is accepted. */
  readonly file: string;
  /**
   * Tools that were never seen: `"accept"` (default) records them as they are, `"refuse"` leaves them out until somebody
   * accepts them, a function decides (true, false, or the wire names it accepts).
   */
  readonly onFirstUse?:
    | "accept"
    | "refuse"
    | ((use: FirstUse) => boolean | readonly string[] | Promise<boolean | readonly string[]>);
}

/** What is asked before a child process is started for the first time. */
export interface FirstStart {
  readonly server: string;
  /** The exact command, ready to show to a person. */
  readonly commandLine: string;
}

export type OnFirstStart = (start: FirstStart) => boolean | Promise<boolean>;

/** A server's usable tools and what is wrong with the rest. */
export interface ToolCheck<T extends TrustedTool> {
  readonly tools: readonly T[];
  readonly problems: ServerInfo["problems"];
}

/** The list of one server as the gate needs it before a call. */
interface KnownTools {
  readonly known: readonly TrustedTool[];
  renew(limitMs: number, what: string): Promise<number>;
  expire(): void;
}

interface GateOptions {
  readonly servers: Readonly<Record<string, ServerConfig>>;
  readonly pin: PinOptions | undefined;
  readonly onFirstStart: OnFirstStart | undefined;
  readonly signal: AbortSignal;
}

function changed(server: string, tool: string, changes: readonly ToolChange[], file: string): TrustError {
  return new TrustError(
    `tool "${tool}" of server "${server}" is not what was accepted in ${file}; it is not used until somebody accepts it again (acceptTools, tenon trust):\n${formatChanges(changes)}`,
    { code: "tool_changed", server, maybeExecuted: false, data: { tool, changes } },
  );
}

function notAccepted(server: string, tool: string, why: string): TrustError {
  return new TrustError(`tool "${tool}" of server "${server}" ${why}; nothing was sent`, {
    code: "tool_not_accepted",
    server,
    maybeExecuted: false,
    data: { tool },
  });
}

/** Asks a handler of the program. @throws ConfigError `handler_failed` when it throws: that is no fault of the server */
async function decided<T>(server: string, handler: string, ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof TenonError) throw cause;
    const reason = messageOf(cause);
    throw new ConfigError(`${handler} threw for server "${server}": ${reason}`, {
      code: "handler_failed",
      server,
      maybeExecuted: false,
      cause,
    });
  }
}

/** Decides which tools of which servers a client uses, and which child processes it starts. */
export class Gate {
  readonly #options: GateOptions;
  /** Per server: why tools are refused, as of its last list. */
  readonly #refused = new Map<string, Map<string, TrustError>>();
  readonly #started = new Set<string>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** The tools of one server's list that may be used; the rest are problems. Called with every list that arrives. */
  async admit<T extends TrustedTool>(server: string, { tools, problems }: ToolCheck<T>): Promise<ToolCheck<T>> {
    const { pin } = this.#options;
    const refused = new Map<string, TrustError>();
    const { grants } = this.#options.servers[server] ?? {};
    for (const { wireName, annotations } of tools) {
      const why = toolRefusal(grants, wireName) ?? effectRefusal(grants, annotations);
      if (why !== undefined) refused.set(wireName, notGranted(server, `tool "${wireName}"`, why));
    }
    if (pin)
      await this.#checkPins(
        pin,
        server,
        tools.filter(({ wireName }) => !refused.has(wireName)),
        refused,
      );
    this.#refused.set(server, refused);
    const left = [...refused].map(([tool, { message }]) => ({ tool, reason: message }));
    return { tools: tools.filter(({ wireName }) => !refused.has(wireName)), problems: [...problems, ...left] };
  }

  /**
   * Lets a call pass. A refused tool is looked up once more, so that one accepted meanwhile is usable at once.
   * @param limitMs of the call, for what the server takes to list its tools
   * @returns how much of it is spent
   * @throws TrustError `not_granted`, `tool_changed`, `tool_not_accepted`, ConnectionError `timeout`
   */
  async permit(server: string, tool: string, list: KnownTools, limitMs: number): Promise<number> {
    const { grants } = this.#options.servers[server] ?? {};
    const why = toolRefusal(grants, tool);
    if (why !== undefined) throw notGranted(server, `tool "${tool}"`, why);
    if (!this.#options.pin && !grants?.effects) return 0;
    let spent = 0;
    const usable = () => list.known.some(({ wireName }) => wireName === tool);
    for (const again of [false, true]) {
      if (again) list.expire();
      if (again || !this.#refused.has(server)) {
        spent += await list.renew(Math.max(1, limitMs - spent), `tools/call ${tool}`);
      }
      if (usable()) return spent;
    }
    throw (
      this.#refused.get(server)?.get(tool) ??
      notAccepted(server, tool, "is not in the list of its tools, so nobody can have accepted it")
    );
  }

  /**
   * Asks before a child process is started that nobody accepted; once per command.
   * @throws TrustError `not_started`, ConfigError `handler_failed`, `bad_lock`
   */
  async start(server: string, config: EndpointConfig): Promise<void> {
    const { onFirstStart, pin, signal } = this.#options;
    if (!onFirstStart || !("command" in config)) return;
    const commandLine = commandLineOf(config);
    if (this.#started.has(server)) return;
    const servers: Lock["servers"] = pin ? (await readLock(pin.file)).servers : {};
    if (!(Object.hasOwn(servers, server) && servers[server]?.start === commandLine)) {
      const stopped = () => this.#refuseStart(server, commandLine, "the client was closed");
      const asked = decided(server, "onFirstStart", () => onFirstStart({ server, commandLine }));
      if ((await withSignal(asked, signal, stopped)) !== true) {
        throw this.#refuseStart(server, commandLine, "onFirstStart did not allow it");
      }
      if (pin) await acceptStart(pin.file, server, commandLine);
    }
    this.#started.add(server);
  }

  #refuseStart(server: string, commandLine: string, why: string): TrustError {
    return new TrustError(`server "${server}" was not started: ${why}. Its command: ${commandLine}`, {
      code: "not_started",
      server,
      maybeExecuted: false,
      data: { commandLine },
    });
  }

  async #checkPins(
    pin: PinOptions,
    server: string,
    tools: readonly TrustedTool[],
    refused: Map<string, TrustError>,
  ): Promise<void> {
    const lock = await readLock(pin.file);
    const fresh = tools.filter(({ wireName }) => !pinnedTool(lock, server, wireName));
    this.#compare(pin, lock, server, tools, refused);
    if (fresh.length === 0) return;
    const accepted = await this.#firstUse(pin, lock, server, fresh);
    if (accepted.length > 0) {
      // another process may have accepted the same tools in another form meanwhile: its word counts, ours is compared with it
      const after = await updateLock(pin.file, (now) =>
        withTools(
          now,
          accepted.filter(({ wireName }) => !pinnedTool(now, server, wireName)),
        ),
      );
      this.#compare(pin, after, server, accepted, refused);
    }
    for (const { wireName } of fresh) {
      if (accepted.some((tool) => tool.wireName === wireName)) continue;
      refused.set(
        wireName,
        notAccepted(server, wireName, `was never accepted in ${pin.file} (acceptTools, tenon trust)`),
      );
    }
  }

  #compare(
    pin: PinOptions,
    lock: Lock,
    server: string,
    tools: readonly TrustedTool[],
    refused: Map<string, TrustError>,
  ) {
    for (const tool of tools) {
      const pinned = pinnedTool(lock, server, tool.wireName);
      const now = definitionOf(tool);
      if (!pinned || pinned.fingerprint === fingerprint(now)) continue;
      refused.set(tool.wireName, changed(server, tool.wireName, diffTool(pinned.definition, now), pin.file));
    }
  }

  async #firstUse(
    { onFirstUse = "accept" }: PinOptions,
    lock: Lock,
    server: string,
    tools: readonly TrustedTool[],
  ): Promise<readonly TrustedTool[]> {
    if (onFirstUse === "accept") return tools;
    if (onFirstUse === "refuse") return [];
    const known = Object.hasOwn(lock.servers, server) && Object.keys(lock.servers[server]?.tools ?? {}).length > 0;
    const use: FirstUse = { server, tools, findings: reviewTools(tools), known };
    const asked = decided(server, "onFirstUse", () => onFirstUse(use));
    const stopped = () =>
      notAccepted(server, tools[0]?.wireName ?? "", "was not accepted before the client was closed");
    const answer = await withSignal(asked, this.#options.signal, stopped);
    if (typeof answer === "boolean") return answer ? tools : [];
    return tools.filter(({ wireName }) => answer.includes(wireName));
  }
}

/**
 * Reads the client option `pin`.
 * @throws ConfigError `invalid_option`, `unknown_option`
 */
export function pinOptions(pin: string | PinOptions | undefined): PinOptions | undefined {
  if (pin === undefined) return undefined;
  const options = typeof pin === "string" ? { file: pin } : pin;
  const wrong = (what: string): never => {
    throw new ConfigError(`createClient(options).pin ${what}`, { code: "invalid_option" });
  };
  if (typeof options !== "object" || options === null)
    return wrong("must be the path of a lock file, or { file, onFirstUse }");
  checkOptions(options, ["file", "onFirstUse"], "createClient(options).pin");
  if (typeof options.file !== "string" || options.file === "") return wrong('needs a file, such as "tenon.lock"');
  const { onFirstUse } = options;
  if (
    onFirstUse !== undefined &&
    typeof onFirstUse !== "function" &&
    onFirstUse !== "accept" &&
    onFirstUse !== "refuse"
  ) {
    return wrong('.onFirstUse must be "accept", "refuse" or a function');
  }
  return options;
}
