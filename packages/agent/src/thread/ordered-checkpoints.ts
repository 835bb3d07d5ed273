import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { keepNewest } from "@tenon/core";

type Config = Parameters<BaseCheckpointSaver["put"]>[0];
type Tuple = NonNullable<Awaited<ReturnType<BaseCheckpointSaver["getTuple"]>>>;

/** In the metadata of a checkpoint that was saved under a later id: the one LangGraph gave it, of which the ids of its steps are made. */
const OWN_ID = "dev.tenon/checkpoint-id";
/** Ids that a run still uses: it goes on from its last checkpoint, so that few are needed. */
const MAX_RENAMED = 10_000;

/** The next id after that one: a UUID of version 6 (RFC 9562 5.6) is a count of 100 ns, its greatest parts first. */
function idAfter(id: string): string | undefined {
  const [, high, mid, low, rest] = /^([0-9a-f]{8})-([0-9a-f]{4})-6([0-9a-f]{3})(-.+)$/i.exec(id) ?? [];
  if (high === undefined || rest === undefined) return undefined;
  const next = (BigInt(`0x${high}${mid}${low}`) + 1n).toString(16).padStart(15, "0");
  return `${next.slice(0, 8)}-${next.slice(8, 12)}-6${next.slice(12)}${rest}`;
}

/** A checkpoint as LangGraph knows it, under the id it is saved with. */
function asKnown(tuple: Tuple): Tuple {
  const own: unknown = (tuple.metadata as Record<string, unknown> | undefined)?.[OWN_ID];
  return typeof own === "string" ? { ...tuple, checkpoint: { ...tuple.checkpoint, id: own } } : tuple;
}

/**
 * A saver whose checkpoints come one after the other whatever the clocks say. Savers take the greatest id for the newest, and
 * LangGraph makes ids of the time: what is saved after a clock was set back, or by a machine whose clock is behind, would never be
 * seen again, and the thread would go on from where it had been. This one gives such a checkpoint the id after that of its parent.
 *
 * @param saver any of LangGraph's; threads that were saved without this are read as they are
 * @example const checkpointer = orderedCheckpoints(SqliteSaver.fromConnString("threads.sqlite"));
 */
export function orderedCheckpoints<Saver extends BaseCheckpointSaver>(saver: Saver): Saver {
  const renamed = new Map<string, string>();
  const nameOf = ({ configurable = {} }: Config, id: unknown): string =>
    JSON.stringify([configurable.thread_id, configurable.checkpoint_ns ?? "", id]);

  /** The configuration with the id under which its checkpoint was saved. */
  function asSaved(config: Config): Config {
    const id = renamed.get(nameOf(config, config.configurable?.checkpoint_id));
    return id === undefined ? config : { ...config, configurable: { ...config.configurable, checkpoint_id: id } };
  }

  const own: Pick<BaseCheckpointSaver, "put" | "putWrites" | "getTuple" | "list"> = {
    async put(config, checkpoint, metadata, newVersions) {
      const parent = asSaved(config);
      const before: unknown = parent.configurable?.checkpoint_id;
      const id = typeof before === "string" && checkpoint.id <= before ? idAfter(before) : undefined;
      if (id === undefined) return saver.put(parent, checkpoint, metadata, newVersions);
      keepNewest(renamed, nameOf(config, checkpoint.id), id, MAX_RENAMED);
      return saver.put(
        parent,
        { ...checkpoint, id },
        { ...metadata, [OWN_ID]: checkpoint.id } as typeof metadata,
        newVersions,
      );
    },
    putWrites: (config, writes, taskId) => saver.putWrites(asSaved(config), writes, taskId),
    async getTuple(config) {
      const tuple = await saver.getTuple(asSaved(config));
      return tuple && asKnown(tuple);
    },
    async *list(config, options) {
      for await (const tuple of saver.list(asSaved(config), options)) yield asKnown(tuple);
    },
  };
  // everything else is the saver's
  return Object.assign(Object.create(saver) as Saver, own);
}
