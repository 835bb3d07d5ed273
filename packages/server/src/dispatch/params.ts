import { isRecord } from "@tenon/core";
import { LOG_LEVELS } from "@tenon/core/internal";
import { parseBody } from "../http/body.ts";

/** One parameter of a method: what it must look like, and how a refusal says so. */
interface Parameter {
  readonly fits: (value: unknown) => boolean;
  readonly expected: string;
}

/** How a method's parameters look. */
export interface Shape {
  readonly params: Readonly<Record<string, Parameter>>;
  /** The parameter that the header `Mcp-Name` repeats. */
  readonly named?: string;
}

const isText = (value: unknown): boolean => typeof value === "string";
const optional = ({ fits, expected }: Parameter): Parameter => ({
  fits: (value) => value === undefined || fits(value),
  expected,
});
const text: Parameter = { fits: isText, expected: "text" };
const object: Parameter = { fits: isRecord, expected: "an object, or text that holds one as JSON" };
const texts: Parameter = {
  fits: (value) => isRecord(value) && Object.values(value).every(isText),
  expected: "an object whose values are all text",
};

/** A method that takes a cursor and nothing else. */
const LIST: Shape = { params: { cursor: optional(text) } };
const SHAPES: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ["tools/call", { params: { name: text, arguments: optional(object) }, named: "name" }],
  ["prompts/get", { params: { name: text, arguments: optional(texts) }, named: "name" }],
  ["resources/read", { params: { uri: text }, named: "uri" }],
  ["tools/list", LIST],
  ["prompts/list", LIST],
  ["resources/list", LIST],
  ["resources/templates/list", LIST],
]);

/** Resources that one stream or session may watch. */
export const MAX_WATCHED = 1_000;
/** Characters of their addresses together: they are held for as long as the client stays. */
export const MAX_WATCHED_CHARS = 64 * 1024;

/** Tasks that one stream may follow: each is looked at now and then. */
const MAX_FOLLOWED = 100;

/** Whether a stream may watch these; what is no list of texts is for the protocol layer to refuse. */
function mayWatch(filter: unknown): boolean {
  const ids: unknown = isRecord(filter) ? filter.taskIds : undefined;
  if (ids !== undefined && !(Array.isArray(ids) && ids.length <= MAX_FOLLOWED && ids.every(isText))) return false;
  const uris: unknown = isRecord(filter) ? filter.resourceSubscriptions : undefined;
  if (!Array.isArray(uris)) return true;
  const chars = uris.reduce((sum: number, uri: unknown) => sum + (typeof uri === "string" ? uri.length : 0), 0);
  return uris.length <= MAX_WATCHED && chars <= MAX_WATCHED_CHARS;
}

const hasTexts = (value: unknown, ...names: readonly string[]): boolean =>
  isRecord(value) && names.every((name) => isText(value[name]));
/** Methods that only the protocol layer answers, or that are too seldom for a short way. */
const OTHERS: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  [
    "completion/complete",
    {
      params: {
        ref: {
          fits: (ref) =>
            isRecord(ref) &&
            ((ref.type === "ref/prompt" && hasTexts(ref, "name")) ||
              (ref.type === "ref/resource" && hasTexts(ref, "uri"))),
          expected: 'a "ref/prompt" with a name or a "ref/resource" with a uri',
        },
        argument: { fits: (value) => hasTexts(value, "name", "value"), expected: "an object with a name and a value" },
        context: optional({
          fits: (value) => isRecord(value) && (value.arguments === undefined || texts.fits(value.arguments)),
          expected: "an object with arguments that are all text",
        }),
      },
    },
  ],
  [
    "logging/setLevel",
    {
      params: {
        level: { fits: (level) => LOG_LEVELS.some((known) => known === level), expected: LOG_LEVELS.join(" or ") },
      },
    },
  ],
  ["resources/subscribe", { params: { uri: text } }],
  [
    "subscriptions/listen",
    {
      params: {
        notifications: {
          fits: mayWatch,
          expected: `at most ${MAX_WATCHED} resourceSubscriptions with ${MAX_WATCHED_CHARS} characters together, and taskIds that are at most ${MAX_FOLLOWED} texts`,
        },
      },
    },
  ],
  ["resources/unsubscribe", { params: { uri: text } }],
  [
    "initialize",
    {
      params: {
        protocolVersion: text,
        capabilities: { fits: isRecord, expected: "an object" },
        clientInfo: {
          fits: (info) => hasTexts(info, "name", "version"),
          expected: "an object with a name and a version",
        },
      },
    },
  ],
]);

/** The shape of the parameters of a method with a short way to its answer. */
export const shapeOf = (method: string): Shape | undefined => SHAPES.get(method);

/** A value as an error may show it. */
function brief(value: unknown): string {
  if (value === undefined) return "nothing";
  const json = JSON.stringify(value) ?? typeof value;
  return json.length > 60 ? `${json.slice(0, 57)}…` : json;
}

/**
 * The arguments of a call as an object: some models and clients send all of them as one JSON text. Anything else stays as it
 * is, for the caller to refuse.
 */
export function wholeArguments(given: unknown): unknown {
  if (typeof given !== "string" || !/^\s*\{/.test(given)) return given;
  const parsed = parseBody(given);
  return "value" in parsed && isRecord(parsed.value) ? parsed.value : given;
}

/** What is wrong with the parameters of a request, in one line; undefined when all is well. */
export function wrongParams({ params }: Shape, given: Readonly<Record<string, unknown>>): string | undefined {
  const wrong = Object.entries(params).filter(([name, { fits }]) => !fits(given[name]));
  if (wrong.length === 0) return undefined;
  return wrong.map(([name, { expected }]) => `${name}: expected ${expected}, got ${brief(given[name])}`).join("; ");
}

/** A refusal as it goes over the wire. */
export interface Refusal {
  readonly jsonrpc: "2.0";
  readonly id: string | number;
  readonly error: { readonly code: number; readonly message: string };
}

const INVALID_PARAMS = -32602;

/**
 * Reads a message before the protocol layer's schemas do: arguments that came as one JSON text become the object they hold, and
 * parameters of the wrong kind are refused in words a caller can use.
 * @param message any JSON; what is no request with known parameters comes back as it is
 */
export function readMessage<T>(message: T): { message: T } | { refusal: Refusal; method: string } {
  if (!isRecord(message) || message.jsonrpc !== "2.0" || typeof message.method !== "string") return { message };
  const { id, method, params = {} } = message;
  const shape = SHAPES.get(method) ?? OTHERS.get(method);
  if (!shape || !isRecord(params) || (typeof id !== "string" && !Number.isSafeInteger(id))) return { message };
  const whole = "arguments" in shape.params ? wholeArguments(params.arguments) : params.arguments;
  const decoded = whole !== params.arguments;
  const wrong = wrongParams(shape, decoded ? { ...params, arguments: whole } : params);
  if (wrong === undefined) {
    // the same message, with one parameter in its other spelling
    return { message: decoded ? ({ ...message, params: { ...params, arguments: whole } } as T) : message };
  }
  const error = { code: INVALID_PARAMS, message: `Invalid parameters of ${method}: ${wrong}` };
  return { refusal: { jsonrpc: "2.0", id: id as string | number, error }, method }; // a number or a string by the check above
}
