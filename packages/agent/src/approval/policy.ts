import { ConfigError } from "@tenon/core";
import { checkOptions, didYouMean } from "@tenon/core/internal";
import { mcpMetadata } from "../tool/mcp-tool.ts";

/** What a person may decide about a tool call. */
export type DecisionKind = "approve" | "edit" | "reject" | "respond";

/** How the calls of one tool are approved. */
export interface ApprovalRule {
  /** Allowed decisions, in the order they are offered. Default: all four. */
  decisions?: readonly DecisionKind[];
  /** What the person reads, or how it is made from the arguments. */
  description?: string | ((args: Readonly<Record<string, unknown>>) => string | Promise<string>);
  /** Only calls for which this returns true are asked about. Evaluated once per call. */
  when?: (args: Readonly<Record<string, unknown>>) => boolean | Promise<boolean>;
  /** Tools an edit may change the call to, as `"server/wireTool"` or local names; their schemas check the arguments. Default: none. */
  renameTo?: readonly string[];
}

/** By `"server/wireTool"` or by the tool's local name: a rule, `true` (ask, all decisions) or `false` (never ask). */
export type ApprovalPolicy = Readonly<Record<string, boolean | ApprovalRule>>;

/** The part of a LangChain tool that approvals need. */
export interface ApprovableTool {
  readonly name: string;
  readonly schema?: unknown;
  /** What arguments must fit, where a model is shown another `schema`. */
  readonly inputSchema?: unknown;
  /** A model's arguments in the form in which they will be sent. */
  readonly toWire?: (args: Readonly<Record<string, unknown>>) => Record<string, unknown>;
  readonly metadata?: unknown;
}

/** One tool whose calls need an approval. */
export interface GatedTool {
  readonly name: string;
  readonly schema: unknown;
  /** Configured server name and wire name, for tools of MCP servers. */
  readonly server?: string;
  readonly tool?: string;
  readonly decisions: readonly DecisionKind[];
  readonly description: NonNullable<ApprovalRule["description"]>;
  readonly when?: NonNullable<ApprovalRule["when"]>;
  /** Schemas of the tools an edit may change the call to, by local name and by the policy's. */
  readonly renameTo: ReadonlyMap<string, { readonly name: string; readonly schema: unknown }>;
  readonly toWire?: NonNullable<ApprovableTool["toWire"]>;
}

const KINDS: readonly DecisionKind[] = ["approve", "edit", "reject", "respond"];

function checkRule(key: string, rule: ApprovalRule): void {
  checkOptions(rule, ["decisions", "description", "when", "renameTo"], `approvals: the rule for "${key}"`);
  if (rule.decisions === undefined) return;
  if (rule.decisions.length === 0) {
    throw new ConfigError(
      `approvals: the rule for "${key}" allows no decision; expected at least one of ${KINDS.join(", ")}`,
      { code: "approval_decisions" },
    );
  }
  for (const kind of rule.decisions) {
    if (KINDS.includes(kind)) continue;
    const near = didYouMean(String(kind), KINDS);
    throw new ConfigError(
      `approvals: the rule for "${key}" names the decision "${kind}"; ${near ? `did you mean "${near}"?` : `known: ${KINDS.join(", ")}`}`,
      { code: "approval_decisions" },
    );
  }
}

function derived(tool: ApprovableTool): boolean {
  const annotations = mcpMetadata(tool)?.annotations;
  if (!annotations || annotations.readOnlyHint === true) return false;
  return annotations.destructiveHint === true || annotations.openWorldHint === true;
}

/**
 * Which tools need an approval, by local name.
 * @param derive whether a tool without a rule is judged by the annotations its server gives
 * @param away servers that cannot be reached now, whose tools the policy may name all the same
 * @throws ConfigError `code: "approval_policy"` for a key that names no tool, or two keys for one tool
 */
export function gatedTools(
  tools: readonly ApprovableTool[],
  policy: ApprovalPolicy,
  derive: boolean,
  away: readonly string[] = [],
): ReadonlyMap<string, GatedTool> {
  const wireKeyOf = (tool: ApprovableTool) => {
    const mcp = mcpMetadata(tool);
    return mcp && `${mcp.server}/${mcp.tool}`;
  };
  const known = tools.flatMap((tool) => [wireKeyOf(tool) ?? [], tool.name].flat());
  const demand = (key: string, where: string): void => {
    if (known.includes(key) || away.some((server) => key.startsWith(`${server}/`))) return;
    const near = didYouMean(key, known);
    throw new ConfigError(
      `approvals: ${where} names "${key}", which none of the ${tools.length} tools is called; ` +
        (near ? `did you mean "${near}"?` : `known: ${known.join(", ") || "none"}`),
      { code: "approval_policy", data: { key, near } },
    );
  };
  for (const [key, rule] of Object.entries(policy)) {
    demand(key, "the policy");
    if (typeof rule !== "object") continue;
    checkRule(key, rule);
    for (const name of rule.renameTo ?? []) demand(name, `renameTo of "${key}"`);
  }
  const targets = (names: readonly string[]): GatedTool["renameTo"] =>
    new Map(
      tools.flatMap((tool) => {
        const called = [tool.name, wireKeyOf(tool) ?? tool.name];
        if (!called.some((name) => names.includes(name))) return [];
        return called.map((name) => [name, { name: tool.name, schema: tool.inputSchema ?? tool.schema }] as const);
      }),
    );
  const gated = new Map<string, GatedTool>();
  for (const tool of tools) {
    const wireKey = wireKeyOf(tool);
    const keys = [wireKey, tool.name].filter((key) => key !== undefined && Object.hasOwn(policy, key));
    if (keys.length > 1 && keys[0] !== keys[1]) {
      throw new ConfigError(`approvals: "${keys[0]}" and "${keys[1]}" name the same tool; keep one of the two`, {
        code: "approval_policy",
      });
    }
    const rule = keys[0] === undefined ? derive && derived(tool) : policy[keys[0]];
    if (!rule) continue;
    const detail: ApprovalRule = rule === true ? {} : rule;
    const mcp = mcpMetadata(tool);
    gated.set(tool.name, {
      name: tool.name,
      schema: tool.inputSchema ?? tool.schema,
      ...(tool.toWire && { toWire: tool.toWire }),
      ...(mcp && { server: mcp.server, tool: mcp.tool }),
      decisions: detail.decisions ?? KINDS,
      description:
        detail.description ?? `The agent wants to run ${mcp ? `${mcp.tool} of server ${mcp.server}` : tool.name}.`,
      ...(detail.when && { when: detail.when }),
      renameTo: targets(detail.renameTo ?? []),
    });
  }
  return gated;
}
