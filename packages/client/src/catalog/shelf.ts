interface Kept<V> {
  readonly value: V;
  readonly size: number;
  readonly until: number;
}

/** Values that may be used again for a while: in order of last use, bounded in number and in size together. */
export class Shelf<V> {
  readonly #kept = new Map<string, Kept<V>>();
  readonly #maxEntries: number;
  readonly #maxSize: number;
  #size = 0;

  constructor(maxEntries: number, maxSize: number) {
    this.#maxEntries = maxEntries;
    this.#maxSize = maxSize;
  }

  /** The value at a place, which counts as used now; undefined where there is none or its time has ended. */
  get(place: string): V | undefined {
    const found = this.#kept.get(place);
    if (!found) return undefined;
    this.#drop(place);
    if (found.until <= performance.now()) return undefined;
    this.#put(place, found);
    return found.value;
  }

  /**
   * Keeps a value for `ttlMs` milliseconds; those unused longest give way.
   * @param size in the unit of the bound
   */
  set(place: string, value: V, size: number, ttlMs: number): void {
    this.#drop(place);
    this.#put(place, { value, size, until: performance.now() + ttlMs });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#maxEntries && this.#size <= this.#maxSize) break;
      this.#drop(oldest);
    }
  }

  #put(place: string, kept: Kept<V>): void {
    this.#kept.set(place, kept);
    this.#size += kept.size;
  }

  #drop(place: string): void {
    this.#size -= this.#kept.get(place)?.size ?? 0;
    this.#kept.delete(place);
  }
}
