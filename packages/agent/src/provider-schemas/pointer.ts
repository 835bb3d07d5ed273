import { isRecord } from "@tenon/core";

/** What a local `$ref` points to inside `root`; undefined for addresses elsewhere and for pointers that lead nowhere. */
export function resolvePointer(root: unknown, ref: unknown): unknown {
  if (typeof ref !== "string" || !ref.startsWith("#") || ref.length > 1_000) return undefined;
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(1));
  } catch {
    return undefined;
  }
  if (pointer === "") return root;
  if (!pointer.startsWith("/")) return anchor(root, pointer);
  let at: unknown = root;
  for (const part of pointer.slice(1).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if ((!isRecord(at) && !Array.isArray(at)) || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key]; // a list has its indexes as keys
  }
  return at;
}

/** `#name` means the definition with `$anchor: "name"`. */
function anchor(root: unknown, name: string): unknown {
  if (!isRecord(root)) return undefined;
  const definitions = [root.$defs, root.definitions].flatMap((map) => (isRecord(map) ? Object.values(map) : []));
  return definitions.find((schema) => isRecord(schema) && schema.$anchor === name);
}
