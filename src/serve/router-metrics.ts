/** Renders the state of a router in the Prometheus text format, for `GET /metrics` of a gateway beside its own lines.
 *  Pure. */
import type { RouterStatus } from "./router.ts";

const COUNTERS: Readonly<Record<keyof RouterStatus["counts"], readonly [name: string, help: string]>> = {
  decisions: ["decisions", "Choices made, second ones after a failure included."],
  fallbacks: ["fallbacks", "Choices of the table or the list because the policy or the table failed."],
  shadowed: ["shadowed", "Choices that the shadow made, too."],
  disagreed: ["disagreed", "Choices where the shadow drew another candidate."],
  reloads: ["reloads", "Swaps to a new router."],
  refusedReloads: ["refused_reloads", "Reloads whose new router may not serve, so that the old one stayed."],
  rollbacks: ["rollbacks", "Swaps back to the router before."],
};

export function routerMetrics({ serving, router, policy, sinceMs, counts }: RouterStatus): string {
  const facts = { serving, router, policy: policy?.id ?? "" };
  const labels = Object.entries(facts).map(([name, value]) => `${name}="${value}"`);
  const lines = Object.entries(COUNTERS).flatMap(([key, [name, help]]) => [
    `# HELP rollbook_router_${name}_total ${help}`,
    `# TYPE rollbook_router_${name}_total counter`,
    `rollbook_router_${name}_total ${counts[key as keyof typeof counts]}`,
  ]);
  return [
    ...lines,
    "# HELP rollbook_router_serving_since_seconds When the router began to serve, by what serves.",
    "# TYPE rollbook_router_serving_since_seconds gauge",
    `rollbook_router_serving_since_seconds{${labels.join(",")}} ${sinceMs / 1000}`,
    "",
  ].join("\n");
}
