/** Counters, gauges and histograms in the Prometheus text format, for any process. In: families and observations.
 *  Out: one page of text. Keeps numbers only. */

type MetricLabels = Readonly<Record<string, string | number>>;

/** Help text of every metric, by name. */
interface MetricHelp<Counter extends string, Gauge extends string, Histogram extends string> {
  readonly counter?: Readonly<Record<Counter, string>>;
  readonly gauge?: Readonly<Record<Gauge, string>>;
  readonly histogram?: Readonly<Record<Histogram, string>>;
}

interface MetricFamily {
  readonly help: string;
  readonly type: keyof MetricHelp<never, never, never>;
  readonly series: Map<string, MetricSeries>;
}

export interface MetricSeries {
  readonly labels: string;
  value: number;
  /** Histograms only. `buckets[i]` counts the observations above bound i-1 and up to bound i; `count` counts all of
   *  them. */
  readonly buckets?: number[];
  count?: number;
}

/** Bucket bounds in seconds, from a fast local answer to a long stream. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** Limit on the series of a family. Labels come from configuration and code, never from clients; the limit is a
 *  safeguard. */
const MAX_SERIES = 2000;

export class MetricRegistry<
  Counter extends string = never,
  Gauge extends string = never,
  Histogram extends string = never,
> {
  readonly #families = new Map<string, MetricFamily>();

  constructor(helps: MetricHelp<Counter, Gauge, Histogram>) {
    for (const type of ["counter", "gauge", "histogram"] as const)
      for (const [name, help] of Object.entries<string>(helps[type] ?? {}))
        this.#families.set(name, { help, type, series: new Map() });
  }

  count(name: Counter, labels: MetricLabels = {}, by = 1): void {
    this.series(name, labels).value += by;
  }

  set(name: Gauge, value: number, labels: MetricLabels = {}): void {
    this.series(name, labels).value = value;
  }

  observe(name: Histogram, seconds: number, labels: MetricLabels = {}): void {
    addTo(this.series(name, labels), seconds);
  }

  /** Frequent events keep the returned series, to avoid a lookup each time. */
  series(name: Counter | Gauge | Histogram, labels: MetricLabels = {}): MetricSeries {
    const { series, type } = this.#families.get(name)!;
    let key = "";
    for (const label in labels) key += `${labels[label]}\n`;
    let known = series.get(key);
    if (known !== undefined) return known;
    known = { labels: labelText(labels), value: 0, ...(type === "histogram" ? emptyHistogram() : {}) };
    if (series.size < MAX_SERIES) series.set(key, known);
    return known;
  }

  text(): string {
    const lines: string[] = [];
    for (const [name, { help, type, series }] of this.#families) {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
      for (const each of series.values()) lines.push(...linesOf(name, each));
    }
    return `${lines.join("\n")}\n`;
  }
}

function emptyHistogram(): { buckets: number[]; count: number } {
  return { buckets: new Array<number>(BOUNDS.length).fill(0), count: 0 };
}

export function addTo(series: MetricSeries, seconds: number): void {
  let bucket = 0;
  while (bucket < BOUNDS.length && seconds > BOUNDS[bucket]!) bucket++;
  if (bucket < BOUNDS.length) series.buckets![bucket]!++;
  series.value += seconds;
  series.count!++;
}

function linesOf(name: string, { labels, value, buckets, count }: MetricSeries): string[] {
  if (buckets === undefined) return [`${name}${labels === "" ? "" : `{${labels}}`} ${value}`];
  const join = labels === "" ? "" : `${labels},`;
  let within = 0;
  const upTo = (i: number) => {
    within += buckets[i]!;
    return within;
  };
  return [
    ...BOUNDS.map((bound, i) => `${name}_bucket{${join}le="${bound}"} ${upTo(i)}`),
    `${name}_bucket{${join}le="+Inf"} ${count}`,
    `${name}_sum${labels === "" ? "" : `{${labels}}`} ${value}`,
    `${name}_count${labels === "" ? "" : `{${labels}}`} ${count}`,
  ];
}

function labelText(labels: MetricLabels): string {
  let text = "";
  for (const name in labels)
    text += `${text === "" ? "" : ","}${name}="${String(labels[name]).replaceAll(/["\\\n]/g, (c) => (c === "\n" ? "\\n" : `\\${c}`))}"`;
  return text;
}
