import { isRecord } from "@tenon/core";
import type { ReplicaConfig } from "../types/routing.ts";

/** Bounds of what a registry says of one service. */
const MAX_ENTRIES = 1_000;
const MAX_URL = 2_000;
const MAX_ID = 200;
const MAX_WORDS = 256;

function text(value: unknown, longest: number): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= longest ? value : undefined;
}

/** Words of a list, or of a text with commas. */
export function wordsOf(value: unknown): readonly string[] | undefined {
  const list = typeof value === "string" ? value.split(",").map((word) => word.trim()) : value;
  if (!Array.isArray(list)) return undefined;
  return list.flatMap((word) => text(word, MAX_ID) ?? []).slice(0, MAX_WORDS);
}

/** An entry as a replica; undefined for what names none. Whether its address may be used is looked at where it is used. */
export function replicaOf(entry: unknown): ReplicaConfig | undefined {
  if (typeof entry === "string") return replicaOf({ url: entry });
  if (!isRecord(entry)) return undefined;
  const url = text(entry.url, MAX_URL);
  if (url === undefined) return undefined;
  const id = text(entry.id, MAX_ID);
  const capabilities = entry.capabilities === undefined ? undefined : wordsOf(entry.capabilities);
  return { url, ...(id !== undefined && { id }), ...(capabilities && { capabilities }) };
}

/** All entries that name a replica, in their order. */
export function replicasOf(entries: readonly unknown[]): ReplicaConfig[] {
  return entries.slice(0, MAX_ENTRIES).flatMap((entry) => replicaOf(entry) ?? []);
}
