// Reads the Prometheus text format as far as the gate writes it.
import { text } from "./api.js";

const sample = /^(\w+)(?:\{(.*)\})? (\S+)/;
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export async function scrape() {
  const series = new Map(); // name → [{ labels, value }]
  for (const row of (await text("metrics")).split("\n")) {
    const found = row[0] !== "#" && sample.exec(row);
    if (!found) continue;
    const labels = Object.fromEntries([...(found[2] ?? "").matchAll(label)].map((m) => [m[1], m[2]]));
    const list = series.get(found[1]) ?? [];
    list.push({ labels, value: Number(found[3].replace("+Inf", "Infinity")) });
    series.set(found[1], list);
  }
  return new Scrape(series);
}

class Scrape {
  constructor(series) {
    this.at = performance.now();
    this.series = series;
  }

  has(name) { return this.series.has(name); }

  total(name) { return (this.series.get(name) ?? []).reduce((sum, s) => sum + s.value, 0); }

  // sum adds up by one label, of the series whose labels are wanted.
  sum(name, by, wanted = () => true) {
    const sums = new Map();
    for (const s of (this.series.get(name) ?? []).filter((one) => wanted(one.labels))) sums.set(s.labels[by], (sums.get(s.labels[by]) ?? 0) + s.value);
    return sums;
  }

  // perSecond is how fast a counter has grown since an earlier scrape.
  perSecond(name, before) {
    // A gate that was restarted counts from nothing again.
    return Math.max(0, this.total(name) - before.total(name)) / ((this.at - before.at) / 1000);
  }

  // quantiles of a histogram, all series together, of what came since an earlier
  // scrape; undefined where nothing did. Within a bucket they are interpolated.
  quantiles(name, before, wanted) {
    const bounds = this.sum(name + "_bucket", "le");
    const old = before.sum(name + "_bucket", "le");
    const buckets = [...bounds].map(([le, n]) => [Number(le.replace("+Inf", "Infinity")), n - (old.get(le) ?? 0)]).sort((a, b) => a[0] - b[0]);
    const all = buckets.at(-1)?.[1] ?? 0;
    return wanted.map((q) => {
      if (all <= 0) return undefined;
      let [low, under] = [0, 0];
      for (const [high, count] of buckets) {
        if (count >= q * all) {
          return high === Infinity ? Infinity : low + ((high - low) * (q * all - under)) / Math.max(1, count - under);
        }
        [low, under] = [high, count];
      }
      return undefined;
    });
  }
}
