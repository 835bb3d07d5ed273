// Statistics and output. A row compares within one repetition, since absolute numbers of a shared machine mean little.
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const round = (value) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)));

/** A different order in every repetition, so that what else the machine does hits all lanes alike. */
export function rotated(lanes, repetition) {
  const at = repetition % lanes.length;
  const turned = [...lanes.slice(at), ...lanes.slice(0, at)];
  return Math.floor(repetition / lanes.length) % 2 ? turned.reverse() : turned;
}

/**
 * @param measured lane name → one value per repetition; `tenon` and `baseline` are there, others are peers
 * @param better `more` or `less`: which direction is good; the ratio is always "times better than the baseline"
 */
export function row({ job, variant, unit, better, baseline, measured }) {
  const { tenon, baseline: base, ...peers } = measured;
  const ratios = tenon.map((value, i) => (better === "more" ? value / base[i] : base[i] / value));
  return {
    job,
    variant,
    unit,
    tenon: round(median(tenon)),
    baseline: { name: baseline, value: round(median(base)) },
    ratio: round(median(ratios)),
    ...(Object.keys(peers).length > 0 && {
      peers: Object.fromEntries(Object.entries(peers).map(([name, values]) => [name, round(median(values))])),
    }),
  };
}

export function table(rows) {
  const peers = [...new Set(rows.flatMap((one) => Object.keys(one.peers ?? {})))];
  const head = ["job", "variant", "unit", "tenon", "baseline", "ratio", ...peers];
  const lines = rows.map((one) => [
    one.job,
    one.variant,
    one.unit,
    one.tenon,
    `${one.baseline.value} (${one.baseline.name})`,
    `${one.ratio}×`,
    ...peers.map((name) => one.peers?.[name] ?? "–"),
  ]);
  const widths = head.map((title, i) => Math.max(title.length, ...lines.map((line) => String(line[i]).length)));
  const format = (cells) => cells.map((cell, i) => String(cell).padEnd(widths[i])).join("  ");
  return [format(head), ...lines.map(format)].join("\n");
}
