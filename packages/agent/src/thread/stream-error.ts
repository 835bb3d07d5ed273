import { randomUUID } from "node:crypto";
import { isRecord, TenonError } from "@tenon/core";
import { rootOf } from "../tool/failures.ts";
import { cutText } from "./stream-bounds.ts";

/** What went wrong, for people and programs outside: nothing from inside the process. */
export interface StreamError {
  /** Class of a Tenon error, else `"Error"`. */
  readonly name: string;
  /** Stable: a Tenon error's code, `"model_failed"`, `"recursion_limit"` or `"unexpected"`. */
  readonly code: string;
  readonly message: string;
  /** The same run may succeed later without any change. */
  readonly retryable: boolean;
  /** A call of the run may have taken effect although no answer arrived. */
  readonly maybeExecuted?: boolean;
  readonly server?: string;
  /** HTTP status of a model's service. */
  readonly status?: number;
  /** Names the error in the log, where its text is masked here. */
  readonly reference?: string;
}

const MESSAGE_LENGTH = 2_000;

/** The HTTP status of an error as the clients of model providers throw it. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("status" in error)) return undefined;
  return typeof error.status === "number" ? error.status : undefined;
}

/** Clients of model providers: their errors are all named so, also where no answer came. */
function fromModel(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (isRecord(error) && String(error.lc_error_code ?? "").startsWith("MODEL_")) return true;
  return statusOf(error) !== undefined || /^API(Connection|User)?.*Error$/.test(error.constructor.name);
}

/**
 * An error as an event may tell it. Tenon's own errors are written to be read; of any other only its kind is told, and the
 * text stays in the log under a reference.
 */
export function toStreamError(thrown: unknown): { readonly error: StreamError; readonly masked: boolean } {
  const root = rootOf(thrown);
  if (root instanceof TenonError) {
    const { name, code, retryable, maybeExecuted, server } = root;
    const message = cutText(root.message, MESSAGE_LENGTH).value;
    const more = { ...(maybeExecuted !== undefined && { maybeExecuted }), ...(server !== undefined && { server }) };
    return { error: { name, code, message, retryable, ...more }, masked: false };
  }
  const reference = randomUUID().slice(0, 8);
  const kind = { name: "Error", reference };
  if (isRecord(root) && root.lc_error_code === "GRAPH_RECURSION_LIMIT") {
    const message = `The run was stopped because it took too many steps (reference ${reference})`;
    return { error: { ...kind, code: "recursion_limit", message, retryable: false }, masked: true };
  }
  if (fromModel(root)) {
    const status = statusOf(root);
    const retryable = status === undefined || status === 408 || status === 429 || status >= 500;
    const what = status === undefined ? "did not answer" : `answered with HTTP ${status}`;
    const message = `The model's service ${what} (reference ${reference})`;
    return {
      error: { ...kind, code: "model_failed", message, retryable, ...(status !== undefined && { status }) },
      masked: true,
    };
  }
  const message = `The run failed unexpectedly (reference ${reference})`;
  return { error: { ...kind, code: "unexpected", message, retryable: false }, masked: true };
}
