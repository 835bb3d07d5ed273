import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { isRecord } from "@tenon/core";
import type { Gated } from "./decisions.ts";
import type { DecisionKind, GatedTool } from "./policy.ts";

/** A call that a person was asked about, with what of its rule is needed to read the answer; JSON. */
export interface AskedCall extends SavedRule {
  readonly call: Gated["call"];
  /** What the person reads. */
  readonly text: string;
}

interface SavedRule {
  readonly server?: string;
  readonly tool?: string;
  readonly decisions: readonly DecisionKind[];
  /** Only where the call may be edited. */
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly renameTo?: ReadonlyArray<{ key: string; name: string; schema?: Readonly<Record<string, unknown>> }>;
}

/** A tool's schema as JSON. */
export function jsonSchemaOf(schema: unknown): Record<string, unknown> | undefined {
  if (isInteropZodSchema(schema)) return toJsonSchema(schema);
  return isRecord(schema) ? schema : undefined;
}

/** What is kept of a call that is asked about. */
export function askedCall({ call, rule }: Gated, text: string): AskedCall {
  const edits = rule.decisions.includes("edit");
  const schema = edits ? jsonSchemaOf(rule.schema) : undefined;
  const renameTo = [...rule.renameTo].map(([key, target]) => {
    const schema = jsonSchemaOf(target.schema);
    return { key, name: target.name, ...(schema && { schema }) };
  });
  return {
    call,
    text,
    decisions: rule.decisions,
    ...(rule.server !== undefined && rule.tool !== undefined && { server: rule.server, tool: rule.tool }),
    ...(schema && { schema }),
    ...(edits && renameTo.length > 0 && { renameTo }),
  };
}

/** The rule of a call that was asked about, where its tool is not at hand. */
export function ruleOf(call: Gated["call"], saved: SavedRule): GatedTool {
  const { server, tool } = saved;
  return {
    name: call.name,
    schema: saved.schema,
    decisions: saved.decisions,
    description: "",
    ...(server !== undefined && tool !== undefined && { server, tool }),
    renameTo: new Map((saved.renameTo ?? []).map(({ key, name, schema }) => [key, { name, schema }])),
  };
}
