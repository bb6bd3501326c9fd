/** Counters and histograms in the Prometheus text format. In: what happened. Out: one page of text. */

type MetricLabels = Readonly<Record<string, string | number>>;

interface MetricFamily {
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** By the values of their labels. */
  readonly series: Map<string, Series>;
}

interface Series {
  readonly labels: string;
  value: number;
  /** Of a histogram: how many were within each bound and not the one before, and how many there were. */
  readonly buckets?: number[];
  count?: number;
}

/** Seconds: from a fast local answer to a long stream. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** Labels come from configuration and from us, never from clients; a bound all the same. */
const MAX_SERIES = 2000;

const HELP = {
  rollbook_gateway_calls_total: "Model calls by upstream, model, status and outcome.",
  rollbook_gateway_tokens_total: "Tokens by model and direction, as reported by upstreams.",
  rollbook_gateway_cost_usd_total: "Cost by model, from the configured prices.",
  rollbook_gateway_retries_total: "Upstream attempts that were repeated, by upstream.",
  rollbook_gateway_refusals_total: "Requests refused by the gateway itself, by code.",
  rollbook_gateway_drift_total: "How prompts continued earlier ones, by drift.",
  rollbook_gateway_delivery_total: "Replies by delivery mark.",
  rollbook_gateway_rollouts_total: "Rollouts by what became of them.",
  rollbook_gateway_feedback_total: "Outcomes received.",
  rollbook_gateway_sealing_failures_total: "Rollouts that could not be sealed and stay open.",
  rollbook_gateway_sealing_deaths_total: "Deaths of the thread that seals rollouts.",
  rollbook_gateway_forwarded_total: "Requests for rollouts of other gateways, by peer and outcome.",
  rollbook_gateway_record_failures_total: "Calls that could not be recorded and therefore not be answered.",
} as const;
const HISTOGRAMS = {
  rollbook_gateway_call_seconds: "From the request to the last byte, by upstream.",
  rollbook_gateway_first_byte_seconds: "From the request to the first byte of the reply, by upstream.",
  rollbook_gateway_commit_seconds: "From the end of a reply until its record was durable.",
} as const;
const GAUGES = {
  rollbook_gateway_open_rollouts: "Rollouts that are open, without those of single calls.",
  rollbook_gateway_unsealed_singles: "Calls without a rollout that are in progress or not sealed yet.",
  rollbook_gateway_active_calls: "Calls in progress.",
  rollbook_gateway_seal_backlog: "Rollouts that wait to be sealed.",
} as const;

export interface CallFacts {
  readonly upstream: string;
  readonly model: string;
  readonly status: number;
  readonly outcome: string;
  readonly durationMs: number;
  readonly firstByteMs: number | undefined;
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number } | undefined;
  /** Undefined where the model has no price, or the reply no usage. */
  readonly costUsd: number | undefined;
}

export class Metrics {
  readonly #families = new Map<string, MetricFamily>();
  readonly #calls = new Map<
    string,
    Record<"calls" | "seconds" | "firstByte" | "prompt" | "completion" | "cost", Series>
  >();

  readonly #commits: Series;
  readonly #deliveries: Record<"sent" | "aborted", Series>;

  constructor() {
    for (const [name, help] of Object.entries(HELP))
      this.#families.set(name, { help, type: "counter", series: new Map() });
    for (const [name, help] of Object.entries(GAUGES))
      this.#families.set(name, { help, type: "gauge", series: new Map() });
    for (const [name, help] of Object.entries(HISTOGRAMS))
      this.#families.set(name, { help, type: "histogram", series: new Map() });
    this.#commits = this.#series("rollbook_gateway_commit_seconds", {});
    const delivery = (each: string) => this.#series("rollbook_gateway_delivery_total", { delivery: each });
    this.#deliveries = { sent: delivery("sent"), aborted: delivery("aborted") };
  }

  count(name: keyof typeof HELP, labels: MetricLabels = {}, by = 1): void {
    this.#series(name, labels).value += by;
  }

  set(name: keyof typeof GAUGES, value: number): void {
    this.#series(name, {}).value = value;
  }

  /** How long a reply waited for the disk. */
  committed(seconds: number): void {
    addTo(this.#commits, seconds);
  }

  delivered(delivery: "sent" | "aborted"): void {
    this.#deliveries[delivery].value++;
  }

  /** All that is counted of one call. Its series are looked up together, because this runs for every call. */
  call(facts: CallFacts): void {
    const { upstream, model, status, outcome, usage } = facts;
    const key = `${upstream}\n${model}\n${status}\n${outcome}`;
    let series = this.#calls.get(key);
    if (series === undefined) {
      series = {
        calls: this.#series("rollbook_gateway_calls_total", { upstream, model, status, outcome }),
        seconds: this.#series("rollbook_gateway_call_seconds", { upstream }),
        firstByte: this.#series("rollbook_gateway_first_byte_seconds", { upstream }),
        prompt: this.#series("rollbook_gateway_tokens_total", { model, direction: "prompt" }),
        completion: this.#series("rollbook_gateway_tokens_total", { model, direction: "completion" }),
        cost: this.#series("rollbook_gateway_cost_usd_total", { model }),
      };
      this.#calls.set(key, series);
    }
    series.calls.value++;
    addTo(series.seconds, facts.durationMs / 1000);
    if (facts.firstByteMs !== undefined) addTo(series.firstByte, facts.firstByteMs / 1000);
    series.prompt.value += usage?.promptTokens ?? 0;
    series.completion.value += usage?.completionTokens ?? 0;
    series.cost.value += facts.costUsd ?? 0;
  }

  text(): string {
    const lines: string[] = [];
    for (const [name, { help, type, series }] of this.#families) {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
      for (const each of series.values()) lines.push(...linesOf(name, each));
    }
    return `${lines.join("\n")}\n`;
  }

  #series(name: string, labels: MetricLabels): Series {
    const { series, type } = this.#families.get(name)!;
    let key = "";
    for (const label in labels) key += `${labels[label]}\n`;
    let known = series.get(key);
    if (known !== undefined) return known;
    known = { labels: labelText(labels), value: 0, ...(type === "histogram" ? emptyHistogram() : {}) };
    if (series.size < MAX_SERIES) series.set(key, known);
    return known;
  }
}

function emptyHistogram(): { buckets: number[]; count: number } {
  return { buckets: new Array<number>(BOUNDS.length).fill(0), count: 0 };
}

function addTo(series: Series, seconds: number): void {
  let bucket = 0;
  while (bucket < BOUNDS.length && seconds > BOUNDS[bucket]!) bucket++;
  if (bucket < BOUNDS.length) series.buckets![bucket]!++;
  series.value += seconds;
  series.count!++;
}

function linesOf(name: string, { labels, value, buckets, count }: Series): string[] {
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
