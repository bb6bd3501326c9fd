/** Renders the Prometheus metrics of a training loop.
 *  In: windows as they advance, and the progress of the collecting one. Out: a page of text. */
import { MetricRegistry } from "../collect/index.ts";
import type { Progress } from "../collect/rollout/index.ts";
import type { LoopWindow } from "./fold.ts";

export class LoopMetrics {
  readonly #registry = new MetricRegistry({
    counter: { rollbook_loop_transitions_total: "Transitions sealed by this process, by state reached." },
    gauge: {
      rollbook_loop_windows: "Windows that the run will have.",
      rollbook_loop_window: "The window that advanced last.",
      rollbook_loop_collected: "Rollouts of the window that collects: done, total, dead.",
    },
  });

  constructor(windows: number) {
    this.#registry.set("rollbook_loop_windows", windows);
  }

  advanced({ number, state }: LoopWindow): void {
    this.#registry.set("rollbook_loop_window", number);
    this.#registry.count("rollbook_loop_transitions_total", { state: state ?? "none" });
  }

  collected(progress: Progress): void {
    for (const count of ["done", "total", "dead"] as const)
      this.#registry.set("rollbook_loop_collected", progress[count], { count });
  }

  page(): string {
    return this.#registry.text();
  }
}
