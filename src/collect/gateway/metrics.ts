/** The metrics of a gateway. In: events. Out: one page in the Prometheus text format. */
import { addTo, MetricRegistry, type MetricSeries } from "../metric-registry.ts";

const COUNTERS = {
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

interface CallFacts {
  readonly upstream: string;
  readonly model: string;
  readonly status: number;
  readonly outcome: string;
  readonly durationMs: number;
  readonly firstByteMs: number | undefined;
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number } | undefined;
  /** Undefined if the model has no price, or the reply no usage. */
  readonly costUsd: number | undefined;
}

export class Metrics extends MetricRegistry<
  keyof typeof COUNTERS,
  keyof typeof GAUGES,
  keyof typeof HISTOGRAMS
> {
  readonly #calls = new Map<
    string,
    Record<"calls" | "seconds" | "firstByte" | "prompt" | "completion" | "cost", MetricSeries>
  >();

  readonly #commits: MetricSeries;
  readonly #deliveries: Record<"sent" | "aborted", MetricSeries>;

  constructor() {
    super({ counter: COUNTERS, gauge: GAUGES, histogram: HISTOGRAMS });
    this.#commits = this.series("rollbook_gateway_commit_seconds");
    const delivery = (each: string) => this.series("rollbook_gateway_delivery_total", { delivery: each });
    this.#deliveries = { sent: delivery("sent"), aborted: delivery("aborted") };
  }

  /** Time that a reply waited for the disk. */
  committed(seconds: number): void {
    addTo(this.#commits, seconds);
  }

  delivered(delivery: "sent" | "aborted"): void {
    this.#deliveries[delivery].value++;
  }

  /** Counts one call. Its series are looked up together, because this runs for every call. */
  call(facts: CallFacts): void {
    const { upstream, model, status, outcome, usage } = facts;
    const key = `${upstream}\n${model}\n${status}\n${outcome}`;
    let series = this.#calls.get(key);
    if (series === undefined) {
      series = {
        calls: this.series("rollbook_gateway_calls_total", { upstream, model, status, outcome }),
        seconds: this.series("rollbook_gateway_call_seconds", { upstream }),
        firstByte: this.series("rollbook_gateway_first_byte_seconds", { upstream }),
        prompt: this.series("rollbook_gateway_tokens_total", { model, direction: "prompt" }),
        completion: this.series("rollbook_gateway_tokens_total", { model, direction: "completion" }),
        cost: this.series("rollbook_gateway_cost_usd_total", { model }),
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
}
