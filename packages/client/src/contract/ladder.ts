import { ContractError } from "@tenon/core";
import type { ContractDeclaration } from "@tenon/core/contract";
import type { ContractEvent, ContractStep, ContractWay } from "../types/contracts.ts";
import { judge, loadContract, type Terms } from "./judge.ts";
import { type Step, stepsFor } from "./steps.ts";

/** What a server answered when it was asked what it can do. */
export interface Answer<T> {
  readonly value: T;
  /** What stands under the extension's id; undefined where nothing does. */
  readonly announced: unknown;
}

/** How a server is asked, step by step. */
export interface Ladder<T> {
  readonly terms: Terms;
  /** An answer that is there already: the first steps look at it before anybody is asked. */
  readonly given?: Answer<T>;
  /** Asks anew; left out where there is one answer only, as in the handshake of the older revision. */
  ask?(step: Step): Promise<Answer<T>>;
  /** An answer that will not do: whatever it holds can be given back. */
  discard?(value: T): void;
  /** How asking failed, where the next step is worth a try; undefined for what asking again cannot change. */
  failing?(error: unknown): Pick<ContractStep, "outcome" | "reason"> | undefined;
  /** Told how it went; `result` is the way that was accepted, `refused`, or `failed` where the server could not be asked. */
  tell(event: ContractEvent, result: string): void;
}

/** What was agreed on. */
export interface Agreed<T> {
  readonly value: T;
  /** Undefined where the server is used without a contract. */
  readonly declaration: ContractDeclaration | undefined;
  /** The step it was agreed on at. */
  readonly step: Step;
}

/** A contract that was not agreed on, each step in a few words. @param last why the server could not be asked at the last step */
function failed(server: string, steps: readonly ContractStep[], last: unknown): ContractError {
  const told = steps.map(({ step, outcome, reason, ms }) => {
    return `${step}: ${outcome === "late" ? `no answer within ${Math.round(ms)} ms` : reason}`;
  });
  return new ContractError(`server "${server}" and this client agree on no contract. ${told.join("; ")}`, {
    code: "negotiation",
    server,
    // a server that answered will answer the same
    retryable: last !== undefined,
    maybeExecuted: false,
    data: { steps },
    // of use to whoever asks whether the server is of another revision: who answered is of this one
    cause: steps.some(({ outcome }) => outcome === "refused") ? undefined : last,
  });
}

/**
 * Agrees with a server on a contract: the best version first, then what can be done without, each asked for with its own budget,
 * and no contract at all only where that is allowed.
 * @throws ContractError `negotiation` with each step, `signature`, `schema_conflict`, `malformed_contract`; whatever asking threw that
 * asking again cannot change
 */
export async function climb<T>(ladder: Ladder<T>): Promise<Agreed<T>> {
  const { terms, given, ask, discard, failing, tell } = ladder;
  const { server } = terms;
  const core = await loadContract();
  const steps: ContractStep[] = [];
  const end = (result: string, accepted?: ContractStep["step"]): void => {
    tell(Object.freeze({ server, steps: Object.freeze(steps), ...(accepted !== undefined && { accepted }) }), result);
  };
  let answer = given;
  let last: unknown;
  for (const step of stepsFor(terms.plain)) {
    const began = performance.now();
    const note = (how: Pick<ContractStep, "outcome" | "reason">): void => {
      steps.push(Object.freeze({ step: step.way, ms: Math.round(performance.now() - began), ...how }));
    };
    if (!answer) {
      if (!ask) break;
      try {
        answer = await ask(step);
      } catch (error) {
        const how = failing?.(error);
        if (!how) {
          if (steps.length > 0) end("failed");
          throw error;
        }
        last = how.outcome === "refused" ? undefined : error;
        note(how);
        continue;
      }
    }
    const verdict = judge(core, terms, step, answer.announced);
    if (verdict.kind === "accepted") {
      const { declaration } = verdict;
      // asked for nothing, a server may declare all the same
      const way = declaration && step.version === undefined ? (declaration.version as ContractWay) : step.way; // it is known
      note({ outcome: "accepted" });
      end(way, way);
      return { value: answer.value, declaration, step };
    }
    note({ outcome: "refused", reason: verdict.kind === "final" ? verdict.error.message : verdict.reason });
    if (verdict.kind === "final") {
      discard?.(answer.value);
      end("refused");
      throw verdict.error;
    }
    last = undefined;
    if (!verdict.holds && ask) {
      discard?.(answer.value);
      answer = undefined;
    }
  }
  if (answer) discard?.(answer.value);
  end(last === undefined ? "refused" : "failed");
  throw failed(server, steps, last);
}
