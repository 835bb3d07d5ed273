import { cleanText, isRecord, messageOf, TenonError } from "@tenon/core";
import { CommanderError } from "commander";

/** What the command line tells its caller when it ends. */
const EXIT = {
  ok: 0,
  /** The command was understood and could not be done. */
  failed: 1,
  /** The command line itself is wrong; nothing was done. */
  usage: 2,
} as const;

/** A failure in the three lines a person reads. */
export interface Explanation {
  readonly what: string;
  /** One line, or several where several things are wrong. */
  readonly why: string | readonly string[];
  readonly todo: string;
}

/** A command could not be done, or, with `code: "usage"`, was not understood. */
export class CommandError extends TenonError {
  readonly explanation: Explanation;
  constructor(explanation: Explanation, options: { code: string; cause?: unknown }) {
    super(`${explanation.what}: ${[explanation.why].flat().join("; ")}; ${explanation.todo}`, options);
    this.explanation = explanation;
  }
}

/** A command said all there is to say, and ends with a code of its own. */
export class ExitError extends TenonError {
  readonly exitCode: number;
  constructor(exitCode: number) {
    super(`ended with ${exitCode}`, { code: "exit" });
    this.exitCode = exitCode;
  }
}

/** What was given to a command is wrong: exit code 2. */
export const usageError = (why: string, todo: string): CommandError =>
  new CommandError({ what: "the command line is wrong", why, todo }, { code: "usage" });

/**
 * Runs a command's work, so that a failure begins with what was not done.
 * @param what for example "no token was signed"
 */
export async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    const known = cause instanceof TenonError;
    // errors of our libraries may say why and what to do apart
    const { problem, fix } = known && isRecord(cause.data) ? cause.data : {};
    throw new CommandError(
      {
        what,
        why: typeof problem === "string" ? problem : `${known ? "" : "unexpected error: "}${messageOf(cause)}`,
        todo: typeof fix === "string" ? fix : "look at --help of the command; --verbose shows the cause",
      },
      { code: known ? cause.code : "unexpected", cause },
    );
  }
}

/** Commander's message: `error: unknown option '--foo'`, and its guess on a second line. */
function explainUsage(error: CommanderError, command: string): Explanation {
  const [first = "", ...rest] = error.message.replace(/^error: /, "").split("\n");
  const guess = /^\(Did you mean (.+)\?\)$/.exec(rest.join(" ").trim())?.[1];
  const help = `see: ${command} --help`;
  return { what: "the command line is wrong", why: first, todo: guess ? `did you mean ${guess}? Or ${help}` : help };
}

function causes(error: unknown): string[] {
  const lines: string[] = [];
  // a chain that leads back to itself would never end
  const seen = new Set<unknown>();
  for (let at = error; at instanceof Error && at.cause !== undefined && !seen.has(at); at = at.cause) {
    seen.add(at);
    const { cause } = at;
    lines.push(`  cause: ${cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)}`);
  }
  return lines;
}

const oneLine = (text: string): string => cleanText(text).replaceAll(/\s*\n\s*/g, " ");

/**
 * What is shown of an error, and the exit code that goes with it.
 * @param command the command it belongs to, for example `tenon token`
 * @param verbose adds the chain of causes
 */
export function describeFailure(
  error: unknown,
  command: string,
  verbose: boolean,
): { readonly text: string; readonly exitCode: number } {
  if (error instanceof ExitError) return { text: "", exitCode: error.exitCode };
  // help and version end as errors too
  if (error instanceof CommanderError && error.exitCode === 0) return { text: "", exitCode: EXIT.ok };
  if (error instanceof CommanderError && error.code === "commander.help") return { text: "", exitCode: EXIT.usage };
  const explanation =
    error instanceof CommanderError
      ? explainUsage(error, command)
      : error instanceof CommandError
        ? error.explanation
        : { what: "it failed", why: `unexpected error: ${messageOf(error)}`, todo: "run it again with --verbose" };
  const lines = [
    `${command}: ${explanation.what}`,
    ...[explanation.why].flat().map((line, at) => `  ${at === 0 ? "why:" : "    "} ${line}`),
    `  do:  ${explanation.todo}`,
    ...(verbose ? causes(error) : []),
  ];
  const usage = error instanceof CommanderError || (error instanceof CommandError && error.code === "usage");
  return { text: `${lines.map(oneLine).join("\n")}\n`, exitCode: usage ? EXIT.usage : EXIT.failed };
}
