/**
 * Sets an entry as the newest of a map, and takes the oldest out of one that holds more than `max`: the order of a `Map` is the
 * order in which its keys were set. A kept library for this costs 5 ms at every start, and memory for `max` entries at once.
 * @example keepNewest(tokens, key, token, 10_000)
 */
export function keepNewest<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    if (map.size <= max) return;
  }
}

/**
 * Reads the text of a stream that a stranger sends, in UTF-8.
 * @returns undefined when it has more than `maxBytes`; the rest is not read, and the stream is cancelled
 * @throws what the stream throws
 * @example const text = await readBounded(response.body ?? [], 64 * 1024);
 */
export async function readBounded(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let size = 0;
  let text = "";
  for await (const part of stream) {
    size += part.byteLength;
    if (size > maxBytes) return undefined; // leaving the loop cancels the rest
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}
