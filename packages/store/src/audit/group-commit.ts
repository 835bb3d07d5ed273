/** What waits for its turn. */
interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Items written down together, at most. */
const BATCH = 256;

/**
 * Writes down what comes while the last batch is being written in one go: one wait for the disk for all of them. Each caller
 * hears of its own item, when it is durable.
 * @param commit writes items down and says what became of each, in their order
 */
export function groupCommit<Item, Result>(commit: (items: readonly Item[]) => Promise<readonly Result[]>) {
  const waiting: Waiting<Item, Result>[] = [];
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH);
      try {
        const results = await commit(batch.map(({ item }) => item));
        for (const [i, { resolve, reject }] of batch.entries()) {
          const result = results[i];
          if (result === undefined) reject(new Error("a batch was answered in part"));
          else resolve(result);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    running = undefined;
  }

  return {
    add: (item: Item): Promise<Result> =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        // what is added in the same moment goes along
        running ??= Promise.resolve().then(run);
      }),
    /** Resolves when nothing waits. */
    idle: async (): Promise<void> => {
      while (running) await running;
    },
  };
}
