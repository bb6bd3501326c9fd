import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { openTelemetry } from "../src/collect/telemetry/index.ts";
import { echoModels, routedGateway } from "./support/routed-gateway.ts";

interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: { expr: string; legendFormat: string }[];
}
const dashboard = JSON.parse(readFileSync("examples/grafana/rollbook.json", "utf8")) as { panels: Panel[] };

/** Sample names of a metrics page, with the labels of each. */
function samplesOf(page: string): Map<string, Set<string>> {
  const samples = new Map<string, Set<string>>();
  for (const [, name, type] of page.matchAll(/^# TYPE (\w+) (\w+)$/gm))
    for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""])
      samples.set(name! + suffix, new Set());
  for (const [, name, labels = ""] of page.matchAll(/^(\w+)\{(.*)\} /gm))
    for (const [, label] of labels.matchAll(/(\w+)="/g)) samples.get(name!)!.add(label!);
  return samples;
}

it("the dashboard asks for nothing but metrics and labels that a gateway with a router and spans has", async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
  const telemetry = openTelemetry(env, { book: "book-1", worker: "gateway" })!;
  onTestFinished(() => telemetry.close(0));
  const { gateway, ask } = await routedGateway({}, { models: echoModels });
  await ask("one");
  const page = await (await fetch(`${gateway.url}/metrics`)).text();
  const samples = samplesOf(page + telemetry.metrics());
  const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const named = new Set(expressions.flatMap((expr) => expr.match(/rollbook_\w+/g) ?? []));
  expect([...named].filter((name) => !samples.has(name))).toEqual([]);
  // Series of refusals and retries appear with the first refusal or retry. Their label is the gateway's counting key.
  const late = new Map([
    ["rollbook_gateway_refusals_total", "code"],
    ["rollbook_gateway_retries_total", "upstream"],
  ]);
  for (const expr of expressions) {
    const [, list] = /sum by \(([^)]*)\)/.exec(expr) ?? [];
    const name = /rollbook_\w+/.exec(expr)![0];
    for (const label of list?.split(", ") ?? [])
      expect([...samples.get(name)!, late.get(name)], expr).toContain(label);
  }
});

it("the panels of the dashboard have ids of their own, lie in the grid, and do not overlap", () => {
  const { panels } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24);
    return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
});
