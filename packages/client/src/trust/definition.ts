import { isRecord, type Json, type JsonObject } from "@tenon/core";
import { digest, toJson, visibleText } from "@tenon/core/internal";
import { expectList } from "../expect.ts";
import type { CatalogTool } from "../types/catalog.ts";

/** What trust looks at in a tool of the catalog. */
export type TrustedTool = Omit<CatalogTool, "name" | "meta">;

/** The part of a tool's definition that is pinned: everything a model reads or that steers a call. */
export interface ToolDefinition {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly annotations: JsonObject;
}

/** The pinned part of a tool. */
export function definitionOf(tool: TrustedTool): ToolDefinition {
  const { wireName: name, title, description, inputSchema, outputSchema } = tool;
  const annotations = toJson({ ...tool.annotations }) as JsonObject; // an object stays one
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema,
    ...(outputSchema !== undefined && { outputSchema }),
    annotations,
  };
}

/** SHA-256 over the canonical JSON of a definition: the order of keys does not matter, every other difference does. */
export function fingerprint(definition: ToolDefinition): string {
  return `sha256-${digest(definition)}`;
}

/** One difference between two definitions; `before` or `after` is absent where something was added or taken away. */
export interface ToolChange {
  /** Where, for example `inputSchema.properties.to.description`. */
  readonly path: string;
  readonly before?: Json;
  readonly after?: Json;
}

const same = (a: Json | undefined, b: Json | undefined): boolean => JSON.stringify(a) === JSON.stringify(b);

function compare(before: Json | undefined, after: Json | undefined, path: string, found: ToolChange[]): void {
  if (same(before, after)) return;
  if (isRecord(before) && isRecord(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)].sort())) {
      const old = Object.hasOwn(before, key) ? before[key] : undefined;
      const now = Object.hasOwn(after, key) ? after[key] : undefined;
      compare(old, now, path === "" ? key : `${path}.${key}`, found);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, item] of before.entries()) compare(item, after[index], `${path}[${index}]`, found);
    return;
  }
  found.push({ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) });
}

/** What differs between an accepted definition and another one, place by place; empty when nothing does. */
export function diffTool(before: ToolDefinition, after: ToolDefinition): ToolChange[] {
  const found: ToolChange[] = [];
  compare(toJson(before), toJson(after), "", found);
  return found;
}

const MAX_SHOWN = 2_000;

function shownPart(value: Json): string {
  const text = visibleText(typeof value === "string" ? value : JSON.stringify(value));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)` : text;
}

/** Differences for a person, old above new, with hidden characters written out. */
export function formatChanges(changes: readonly ToolChange[]): string {
  expectList(changes, "formatChanges(changes): changes");
  const indent = (sign: string, value: Json) =>
    shownPart(value)
      .split("\n")
      .map((line) => `  ${sign} ${line}`);
  return changes
    .flatMap(({ path, before, after }) => [
      visibleText(path),
      ...(before === undefined ? [] : indent("-", before)),
      ...(after === undefined ? [] : indent("+", after)),
    ])
    .join("\n");
}
