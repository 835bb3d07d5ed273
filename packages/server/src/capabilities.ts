import { type ClientCapabilities, MissingRequiredClientCapabilityError } from "@modelcontextprotocol/server";
import type { Era } from "@tenon/core";
import { ToolError } from "./errors.ts";
import type { QuestionKind } from "./journal.ts";

const needs: Readonly<Record<QuestionKind | "tools", { required: ClientCapabilities; what: string }>> = {
  form: { required: { elicitation: { form: {} } }, what: "show a form to its user" },
  url: { required: { elicitation: { url: {} } }, what: "send its user to a page" },
  sample: { required: { sampling: {} }, what: "complete with its model" },
  tools: { required: { sampling: { tools: {} } }, what: "complete with its model and tools" },
  roots: { required: { roots: {} }, what: "list its roots" },
};

function has(kind: QuestionKind | "tools", { elicitation, sampling, roots }: Readonly<ClientCapabilities>): boolean {
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

/**
 * Why a client cannot be asked, if it cannot: -32021 on 2026-07-28, which tells it what to declare; on 2025-11-25, which has
 * no such code, an error whose message says so.
 */
export function missingCapability(
  kind: QuestionKind | "tools",
  capabilities: Readonly<ClientCapabilities>,
  era: Era,
): Error | undefined {
  if (has(kind, capabilities)) return undefined;
  const { required, what } = needs[kind];
  const message = `This needs a client that can ${what}; it did not declare ${JSON.stringify(required)}`;
  return era === "modern"
    ? new MissingRequiredClientCapabilityError({ requiredCapabilities: required }, message)
    : new ToolError(message, { code: "missing_capability", data: { requiredCapabilities: required } });
}
