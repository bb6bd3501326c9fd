/** Renders the Prometheus metrics of launchers and workers.
 *  In: progress and receipts. Out: a page of text. */
import { MetricRegistry } from "../../collect/index.ts";
import type { QueueCounts } from "../../collect/queue/index.ts";
import type { Agent, Progress } from "../../collect/rollout/index.ts";

/** Counts the rollouts of one worker process. */
export class WorkerMetrics {
  readonly #registry = new MetricRegistry({
    counter: {
      rollbook_worker_begun_total: "Rollouts begun by this worker.",
      rollbook_worker_receipts_total: "Uploads by the outcome on their receipts.",
    },
    gauge: { rollbook_worker_running: "Rollouts whose agent runs now." },
    histogram: { rollbook_worker_agent_seconds: "How long agents ran, failures included." },
  });
  #running = 0;

  /** Wraps an agent so that its rollouts are counted. */
  watch(run: Agent["run"]): Agent["run"] {
    return async (payload, context) => {
      const startMs = performance.now();
      this.#registry.count("rollbook_worker_begun_total");
      this.#registry.set("rollbook_worker_running", ++this.#running);
      try {
        return await run(payload, context);
      } finally {
        this.#registry.set("rollbook_worker_running", --this.#running);
        this.#registry.observe("rollbook_worker_agent_seconds", (performance.now() - startMs) / 1000);
      }
    };
  }

  receipt(outcome: string): void {
    this.#registry.count("rollbook_worker_receipts_total", { outcome });
  }

  page(): string {
    return this.#registry.text();
  }
}

/** Metrics page of the current state of a launch and its queue. */
export function launchPage(progress: Progress, queue: QueueCounts): string {
  const registry = new MetricRegistry({
    gauge: {
      rollbook_launch_rollouts: "Rollouts of the launch: total, done, earlier, dead, truncated.",
      rollbook_launch_failed: "Sealed failures by owner.",
      rollbook_launch_tokens: "Tokens of the rollouts that are done.",
      rollbook_launch_cost_usd: "Cost of the rollouts that are done.",
      rollbook_launch_mean_reward: "Mean reward of labelled rollouts; no sample while there is none.",
      rollbook_queue_items: "Items of the queue by state, those of other launches included.",
    },
  });
  for (const state of ["total", "done", "earlier", "dead", "truncated"] as const)
    registry.set("rollbook_launch_rollouts", progress[state], { state });
  for (const [owner, count] of Object.entries(progress.failed))
    registry.set("rollbook_launch_failed", count, { owner });
  registry.set("rollbook_launch_tokens", progress.tokens);
  registry.set("rollbook_launch_cost_usd", progress.costUsd);
  if (progress.meanReward !== null) registry.set("rollbook_launch_mean_reward", progress.meanReward);
  for (const state of ["waiting", "claimed", "done", "dead"] as const)
    registry.set("rollbook_queue_items", queue[state], { state });
  return registry.text();
}
