/** Builds the graph of a run's sealed records, with an edge from each record to those made from it.
 *  In: the windows of a run. Out: nodes and edges. */
import type { Digest } from "../../base/index.ts";
import type { LineageEdge, LineageNode } from "../../view/charts/index.ts";
import { revisionsOf } from "../candidates.ts";
import type { LoopConfig } from "../config.ts";
import type { LoopWindow, RunState } from "../fold.ts";
import { sourcesOf } from "../members.ts";
import { windowStatus } from "../status.ts";

interface RunLineage {
  readonly nodes: readonly LineageNode[];
  readonly edges: readonly LineageEdge[];
}

/** Graph of the windows that have ended. */
export function runLineage(state: RunState, config: Pick<LoopConfig, "data">): RunLineage {
  const graphs = state.windows.map((window) => windowLineage(state, config, window));
  return { nodes: graphs.flatMap(({ nodes }) => nodes), edges: graphs.flatMap(({ edges }) => edges) };
}

function windowLineage(state: RunState, config: Pick<LoopConfig, "data">, window: LoopWindow): RunLineage {
  const { number } = window;
  const status = windowStatus(window);
  const [sealed, scored, judged] = [window.need("sealed"), window.need("scored"), window.need("judged")];
  const name = (kind: LineageNode["kind"], of = "") => `${kind}-${number}${of === "" ? "" : `-${of}`}`;
  const node = (kind: LineageNode["kind"], label: string, digest: Digest, of = ""): LineageNode => {
    return { ...{ id: name(kind, of), kind, window: number, label, digest } };
  };
  const revisions = revisionsOf(window);
  const { verdict } = judged.envelope;
  const kept = status.state === "kept" ? "kept " : "";
  const before = state.windows.find(({ final }) =>
    window.need("planned").record.previous.includes(final?.digest as Digest),
  );
  return {
    nodes: [
      node("rollouts", `${status.rollouts} rollouts`, sealed.step.members),
      node("batch", `${scored.step.rows} rows`, scored.envelope.batch!),
      ...revisions.map(({ revision, record }) => node("revision", revision.id, record, revision.id)),
      ...(verdict === undefined ? [] : [node("verdict", judged.step.outcome, verdict)]),
      node("release", `${kept}${status.serves}`, window.final!.digest),
    ],
    edges: [
      ...(before === undefined
        ? []
        : [{ from: `release-${before.number}`, to: name("rollouts"), label: "were collected by" }]),
      ...sourcesOf(config, state, window).map((each) => ({
        ...{ from: `rollouts-${each.number}`, to: name("batch"), label: "hold the train split of" },
      })),
      ...revisions.flatMap(({ revision: { id } }) => [
        { from: name("batch"), to: name("revision", id), label: "was trained on" },
        ...(verdict === undefined
          ? []
          : [{ from: name("revision", id), to: name("verdict"), label: "is about" }]),
      ]),
      ...(verdict === undefined ? [] : [{ from: name("verdict"), to: name("release"), label: "follows" }]),
    ],
  };
}
