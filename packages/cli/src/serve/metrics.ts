/** The numbers of a process, while they are kept; what `openTelemetry` of `@tenon/telemetry` returns. */
export interface Numbers {
  text(): Promise<string>;
  close(): Promise<void>;
}

interface Family {
  /** What its help and its type say. */
  readonly head: string[];
  readonly samples: string[];
}

/** A sample with one label more. */
function labelled(sample: string, worker: number): string {
  const name = /^[^{\s]*/.exec(sample)?.[0] ?? "";
  const rest = sample.slice(name.length);
  const label = `worker="${worker}"`;
  if (!rest.startsWith("{")) return `${name}{${label}}${rest}`;
  return `${name}{${label}${rest.startsWith("{}") ? "" : ","}${rest.slice(1)}`;
}

/**
 * The numbers of several processes as one text in the format of Prometheus: each sample says whose it is by a label `worker`, and
 * what belongs to one metric stands together, as the format wants it.
 */
export function mergeNumbers(texts: ReadonlyMap<number, string>): string {
  const families = new Map<string, Family>();
  for (const [worker, text] of texts) {
    let family: Family = { head: [], samples: [] };
    let isNew = false;
    for (const line of text.split("\n")) {
      const [, name] = /^# (?:HELP|TYPE|UNIT) (\S+)/.exec(line) ?? [];
      if (name !== undefined) {
        const known = families.get(name);
        // its second line of comment belongs to the family that the first one made
        isNew = known === undefined || (isNew && known === family);
        family = known ?? { head: [], samples: [] };
        families.set(name, family);
        if (isNew) family.head.push(line);
      } else if (line !== "" && !line.startsWith("#")) family.samples.push(labelled(line, worker));
    }
  }
  return [...families.values()].map(({ head, samples }) => `${[...head, ...samples].join("\n")}\n`).join("");
}
