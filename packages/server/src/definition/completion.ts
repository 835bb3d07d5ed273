import { ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import type { Caller, Exchange } from "../handler/context.ts";

/** What a completer knows besides the text typed so far. */
export interface CompletionContext {
  /** Arguments that are filled in already. */
  readonly arguments: Readonly<Record<string, string>>;
  /** Who asks, by a verified token. */
  readonly caller: Caller | undefined;
  /** Fires when the answer is not wanted any more. */
  readonly signal: AbortSignal;
}

/** Suggests values for one argument. @param value what was typed so far */
export type Completer = (value: string, ctx: CompletionContext) => readonly string[] | Promise<readonly string[]>;

/** Completers by argument name. */
export type Completers = Readonly<Record<string, Completer>>;

/** Values one answer may carry (both revisions, completion). */
const MAX_VALUES = 100;

const invalid = (message: string): ProtocolError => new ProtocolError(ProtocolErrorCode.InvalidParams, message);

/**
 * Answers `completion/complete`. An argument without a completer gets no suggestions; that is no error.
 * @param find the completers of `prompt <name>` or `resource <uri template>`; undefined when there is no such thing
 * @throws ProtocolError -32602 for a prompt or template that is not there
 */
export async function complete(
  params: Record<string, unknown>,
  exchange: Exchange,
  find: (key: string) => Completers | undefined,
): Promise<Result> {
  const { ref, argument, context } = params;
  if (!isRecord(ref) || !isRecord(argument)) throw invalid("completion/complete needs ref and argument");
  const key = ref.type === "ref/prompt" ? `prompt ${String(ref.name)}` : `resource ${String(ref.uri)}`;
  const completers = find(key);
  if (!completers) throw invalid(`There is no ${key} to complete`);
  const name = String(argument.name);
  const completer = Object.hasOwn(completers, name) ? completers[name] : undefined;
  const given = isRecord(context) && isRecord(context.arguments) ? context.arguments : {};
  const values = completer
    ? await completer(String(argument.value ?? ""), {
        // the schema of both revisions says text; anything else is not handed on
        arguments: Object.fromEntries(
          Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
        ),
        caller: exchange.caller,
        signal: exchange.signal,
      })
    : [];
  return {
    completion: { values: values.slice(0, MAX_VALUES), total: values.length, hasMore: values.length > MAX_VALUES },
  };
}
