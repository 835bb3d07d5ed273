import { type ClientCapabilities, MissingRequiredClientCapabilityError } from "@modelcontextprotocol/server";
import { type Era, isRecord } from "@tenon/core";
import { ToolError } from "../errors.ts";
import type { QuestionKind } from "../handler/journal.ts";

/** What may be asked of a client; `tools` is a completion with tools. */
export type Ability = QuestionKind | "tools";

const needs: Readonly<Record<Ability, { required: ClientCapabilities; what: string }>> = {
  form: { required: { elicitation: { form: {} } }, what: "show a form to its user" },
  url: { required: { elicitation: { url: {} } }, what: "send its user to a page" },
  sample: { required: { sampling: {} }, what: "complete with its model" },
  tools: { required: { sampling: { tools: {} } }, what: "complete with its model and tools" },
  roots: { required: { roots: {} }, what: "list its roots" },
};

function has(kind: Ability, { elicitation, sampling, roots }: Readonly<ClientCapabilities>): boolean {
  switch (kind) {
    case "form":
      // a bare `elicitation: {}` is a client from before there were modes: it has forms
      return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
    case "url":
      return elicitation?.url !== undefined;
    case "sample":
      return sampling !== undefined;
    case "tools":
      return sampling?.tools !== undefined;
    case "roots":
      return roots !== undefined;
  }
}

/** What a client has to be able to do for a request that a result carries; undefined when no result may carry it. */
export function abilityFor(request: unknown): Ability | undefined {
  const { method, params } = isRecord(request) ? request : {};
  const asked = isRecord(params) ? params : {};
  switch (method) {
    case "elicitation/create":
      return asked.mode === "url" ? "url" : "form";
    case "sampling/createMessage":
      return asked.tools !== undefined || asked.toolChoice !== undefined ? "tools" : "sample";
    case "roots/list":
      return "roots";
  }
  return undefined;
}

/** What a client would have to declare to be asked so; undefined when it did. */
export function lacking(kind: Ability, capabilities: Readonly<ClientCapabilities>): ClientCapabilities | undefined {
  return has(kind, capabilities) ? undefined : needs[kind].required;
}

/**
 * Why a client cannot be asked, if it cannot: -32021 on 2026-07-28, which tells it what to declare; on 2025-11-25, which has
 * no such code, an error whose message says so.
 */
export function missingCapability(
  kind: Ability,
  capabilities: Readonly<ClientCapabilities>,
  era: Era,
): Error | undefined {
  const required = lacking(kind, capabilities);
  if (!required) return undefined;
  const { what } = needs[kind];
  const message = `This needs a client that can ${what}; it did not declare ${JSON.stringify(required)}`;
  return era === "modern"
    ? new MissingRequiredClientCapabilityError({ requiredCapabilities: required }, message)
    : new ToolError(message, { code: "missing_capability", data: { requiredCapabilities: required } });
}
