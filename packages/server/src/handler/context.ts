import type {
  ClientCapabilities,
  CreateMessageRequestParams,
  CreateMessageResult,
  CreateMessageResultWithTools,
  LoggingLevel,
  Root,
} from "@modelcontextprotocol/server";
import type { Era, Json, JsonObject } from "@tenon/core";
import type { AcceptedContext } from "../contract/contract.ts";
import type { Notifier } from "../dispatch/notify.ts";
import type { Answer, AnswerOf, AnswerTo, NamedQuestion, Shape } from "../question/question.ts";
import type { PromptMessage, ResourceContents } from "./inner.ts";

/** Who makes the request, from a verified token; never from anything the request says about itself. */
export interface Caller {
  /** Who it is: the token's `sub`, or what `subjectClaim` names. */
  readonly subject: string;
  /** The program that calls, where the token says so (`client_id`, `azp`). */
  readonly clientId?: string;
  /** Who vouches for the subject: the same subject at another issuer is another caller. */
  readonly issuer?: string;
  /** Granted by the token, and what the server's `scopeHierarchy` adds; `hasScope` also knows that `orders:*` covers. */
  readonly scopes: readonly string[];
  /** Everything the token says. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** One request as the dispatcher sees it, whatever transport and era it came by. */
export interface Exchange {
  /** The revision it came by: `modern` is 2026-07-28, `legacy` is 2025-11-25 and older. */
  readonly era: Era;
  /** The request's JSON-RPC id, as its client chose it. */
  readonly requestId: string | number;
  /** The session it belongs to, on the older revision over HTTP. */
  readonly sessionId?: string | undefined;
  /** Fires when the client cancels or disconnects, or the server closes. */
  readonly signal: AbortSignal;
  /** The request's `_meta`. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** HTTP headers of the request; undefined on stdio. */
  readonly headers: Headers | undefined;
  /** Where the request came from, past `http.trustedProxies`; undefined on stdio and where nobody knows (a unix socket). */
  readonly remoteAddress?: string | undefined;
  /** Who calls, by a verified token; undefined where the server has no `auth`, and on stdio. */
  readonly caller: Caller | undefined;
  /** What the client says of itself. */
  readonly client: ClientDescription;
  /** The sealed state a retry carries; the server's own business. */
  readonly requestState?: string | undefined;
  /** The answers a retry carries, by key. */
  readonly inputResponses?: Readonly<Record<string, unknown>> | undefined;
  /** What the contract's check let through, set by it alone; undefined where the server has no contract. */
  accepted?: AcceptedContext | undefined;
  /** Sends a notification that belongs to this request. */
  notify(method: string, params: Record<string, unknown>): Promise<void>;
  /** Sends a log message at the level the client asked for, or not at all. */
  log(level: LoggingLevel, data: unknown, logger?: string): Promise<void>;
}

/** How the client describes itself: for display and capability checks, never for security. */
export interface ClientDescription {
  /** The program's name. */
  readonly name?: string | undefined;
  /** Its version. */
  readonly version?: string | undefined;
  /** What it says it can do, for example `elicitation`. */
  readonly capabilities: Readonly<ClientCapabilities>;
}

/** Writes one log message. @param options.logger which part of the server says it; `extra` further data, sent as `{ msg, extra }` */
export type LogFunction = (
  data: unknown,
  options?: { logger?: string; extra?: Record<string, unknown> },
) => Promise<void>;

/** Log messages at their levels, least severe first. */
export interface ContextLog {
  /** For whoever looks for a mistake. */
  readonly debug: LogFunction;
  /** What happens as a rule. */
  readonly info: LogFunction;
  /** What happens as a rule, and matters. */
  readonly notice: LogFunction;
  /** What may become a failure. */
  readonly warning: LogFunction;
  /** What failed. */
  readonly error: LogFunction;
}

/** The context of a contract where its schema is not known to the compiler, or there is none. */
export type AnyContext = Readonly<JsonObject> | undefined;

/**
 * What a handler of a tool, resource or prompt gets besides its arguments.
 * @typeParam Context what the schema of the server's contract describes
 */
export interface ToolContext<Lifespan = unknown, Context = AnyContext> {
  /**
   * Asks the person behind the client and waits for the answer. On 2026-07-28 the call ends here and the handler runs again
   * from the top when the answer arrives, so anything with an effect belongs in {@link step}.
   *
   * @param shape a flat object schema, a scalar schema, `["a", "b"]`, `{ a: "Title" }` or `multi([…])`
   * @param options.key names the question, once per run; needed only when its message changes between rounds
   * @throws ConfigError `code: "shape"` naming a field that a form cannot ask for, `code: "secret_field"` for one it must not,
   * `code: "question_key"` when the key was used before in this run
   * @example const answer = await ctx.elicit("Refund 500?", ["confirm", "cancel"])
   */
  elicit<const S extends Shape>(message: string, shape: S, options?: { key?: string }): Promise<Answer<AnswerOf<S>>>;
  /**
   * Asks several questions in one round.
   * @example const { size, gift } = await ctx.elicitAll({ size: ["S", "M"], gift: { message: "Gift wrap?", shape: z.boolean() } })
   */
  elicitAll<const Q extends Readonly<Record<string, NamedQuestion>>>(
    questions: Q,
  ): Promise<{ [K in keyof Q]: AnswerTo<Q[K]> }>;
  /**
   * Sends the person to a page, for what must not travel through the client (passwords, cards, third-party sign-in), and waits
   * until the page reports the end with `server.completeElicitation(id, …)`.
   *
   * @param url https, or http on loopback, without credentials; as a function it gets the id that the page must report
   * @returns accepted with the data of the completion, declined or cancelled
   * @throws ConfigError `code: "url"`
   * @example await ctx.elicitUrl("Sign in to the bank", (id) => `https://pay.example/start?id=${id}`)
   */
  elicitUrl(
    message: string,
    url: string | URL | ((id: string) => string | URL),
    options?: { key?: string },
  ): Promise<Answer<Json>>;
  /**
   * Runs `fn` once per call, however often the handler is run again; later runs get the recorded result. The result must be
   * JSON (a Date comes back as a string, in the first run too). What `fn` throws passes through and is not recorded: the same
   * step may be tried again, and is when the handler runs again.
   *
   * @param key unique within the handler
   * @param fn receives an idempotency key for the world outside, the same on every run of this call; it must not ask
   * @throws ConfigError `code: "step_key"` when the key was used before in this run, `code: "step_asks"` when `fn` asks
   */
  step<T>(key: string, fn: (idempotencyKey: string) => T | Promise<T>): Promise<T>;
  /**
   * Lets the client's model complete messages.
   * @deprecated in 2026-07-28; earliest removal 2027-07-28. Call a model provider from the server instead.
   */
  sample(
    params: CreateMessageRequestParams,
    options?: { key?: string },
  ): Promise<CreateMessageResult | CreateMessageResultWithTools>;
  /**
   * The directories the client works in.
   * @deprecated in 2026-07-28; earliest removal 2027-07-28. Take paths as arguments or options instead.
   */
  roots(options?: { key?: string }): Promise<readonly Root[]>;
  /**
   * Reads a resource of this server, with the rights of this request's caller and through the server's middleware.
   * @throws ExecutionError `code: "inner_request"` when there is none, or when it would have to ask the person first
   */
  readResource(uri: string): Promise<readonly ResourceContents[]>;
  /** Gets a prompt of this server in the same way. @throws ExecutionError `code: "inner_request"` */
  getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<readonly PromptMessage[]>;
  /**
   * Reports progress. Values that do not grow are dropped, bursts are thinned to the newest, and nothing is sent when the
   * caller did not ask for progress. In a task it is kept with it: clients see it whenever they look.
   * @param done so far, in any unit
   * @param total in the same unit, where it is known
   */
  progress(done: number, total?: number, message?: string): Promise<void>;
  /**
   * Log messages for the client, at the level it asked for; each goes to the server's own log as well. With `extra` the
   * payload travels as `{ msg, extra }`.
   */
  readonly log: ContextLog;
  /**
   * Fires when the client cancels or disconnects, the server closes, or the handler's `timeoutMs` is over. In a task: when it is
   * cancelled or its time is over, and when this process stops, so that another run continues it.
   */
  readonly signal: AbortSignal;
  /** The task this run belongs to; undefined in a call that is none. */
  readonly task: { readonly id: string } | undefined;
  /**
   * Makes the call a task from here on, for tools with `task: { use, start: "handler" }`: its client gets the handle, and the
   * handler runs again from the top in the background, with what was answered and done before. Does nothing in a task, and where
   * the client does not know tasks.
   * @example const answer = await ctx.elicit("Which month?", Month); await ctx.startTask();
   */
  startTask(): Promise<void>;
  /** Who calls, by a verified token; undefined where the server has no `auth`, and on stdio. */
  readonly caller: Caller | undefined;
  /** What the client says of itself: for display and capability checks, never for security. */
  readonly client: ClientDescription;
  /** The revision the request came by: `modern` is 2026-07-28, `legacy` is 2025-11-25 and older. */
  readonly era: Era;
  /** The request's JSON-RPC id, as its client chose it. */
  readonly requestId: string | number;
  /** The session it belongs to: the one of the older revision over HTTP, else the one that the contract's context names. */
  readonly sessionId: string | undefined;
  /**
   * The context that the server's contract asks for, checked and frozen; undefined where it has none. What the caller says of itself:
   * for business rules and logs. Who may do what is decided by `caller`, which a `user_id` in here agrees with. In a server that is
   * mounted in another it is what the other's contract asks for.
   */
  readonly context: Context;
  /** The request's `_meta` without the protocol's own keys. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** Set by callers that may send the same intended effect twice; record it with the effect. */
  readonly idempotencyKey: string | undefined;
  /**
   * HTTP headers of the request, without credentials where there is a `caller` or the server has `auth`; undefined on stdio. A
   * task has none of them: its request is over.
   */
  readonly headers: Headers | undefined;
  /** Where the request came from, past `http.trustedProxies`; undefined on stdio and where nobody knows (a unix socket, a task). */
  readonly remoteAddress: string | undefined;
  /** What the server's `lifespan` opened. */
  readonly lifespan: Lifespan;
  /** Tells clients that asked for it that a list or a resource changed. */
  readonly notify: Notifier;
}
